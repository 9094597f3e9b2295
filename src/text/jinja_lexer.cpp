#include "text/jinja_lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_literal.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

bool is_ascii_digit(char c) {
    return c >= '0' && c <= '9';
}

class Lexer {
public:
    explicit Lexer(std::string_view source) : source_(source) {}

    std::vector<Token> run() {
        while (at_ < source_.size()) data();
        add(TokenKind::end, {});
        return std::move(tokens_);
    }

private:
    [[noreturn]] void fail(std::string message) {
        throw Failure{Fault::syntax, std::move(message), position(at_)};
    }
    /// Positions are asked for in ascending order, so the count goes on from the last one.
    Position position(size_t offset) {
        for (; counted_ < offset && counted_ < source_.size(); ++counted_) {
            const char c = source_[counted_];
            if (c == '\n') {
                ++place_.line;
                place_.column = 1;
            } else if ((c & 0xc0) != 0x80) {
                ++place_.column;
            }
        }
        return place_;
    }
    void add(TokenKind kind, std::string text) {
        tokens_.push_back({kind, position(at_), std::move(text)});
    }
    char peek(size_t ahead = 0) const {
        return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
    }
    bool here(std::string_view s) const { return source_.substr(at_, s.size()) == s; }
    void skip_spaces() {
        while (at_ < source_.size()) {
            size_t next = at_;
            if (!is_space(next_code_point(source_, next))) break;
            at_ = next;
        }
    }

    // ---- outside of tags ----

    void data();
    void add_data(size_t start, size_t end, char sign, bool is_block);
    bool raw_block(size_t data_start);
    void comment();
    size_t next_tag(size_t from) const {
        for (size_t i = source_.find('{', from); i != kNowhere; i = source_.find('{', i + 1))
            if (i + 1 < source_.size() &&
                (source_[i + 1] == '%' || source_[i + 1] == '{' || source_[i + 1] == '#'))
                return i;
        return kNowhere;
    }
    char take_sign() {
        const char c = peek();
        if (c != '-' && c != '+') return 0;
        ++at_;
        return c;
    }
    // Remembers whether what was just read ends a line: then the text after it starts one.
    void after_tag(size_t start) { line_start_ = at_ > start && source_[at_ - 1] == '\n'; }

    // ---- inside of tags ----

    void tag(bool is_variable);
    bool tag_end(bool is_variable);
    bool number();
    bool name();
    bool string();
    void op();

    std::string_view source_;
    size_t at_ = 0;
    size_t counted_ = 0;
    Position place_{1, 1};
    bool line_start_ = true;
    std::vector<char> open_;  // brackets to be closed
    std::vector<Token> tokens_;
};

// The text in [start, end), minus white space that the tag after it asks to strip.
void Lexer::add_data(size_t start, size_t end, char sign, bool is_block) {
    std::string_view text = source_.substr(start, end - start);
    if (sign == '-') {
        text = strip_right(text);
    } else if (is_block && sign != '+') {
        // lstrip_blocks: white space between the start of the line and the tag
        const size_t newline = text.rfind('\n');
        const size_t line = newline == kNowhere ? 0 : newline + 1;
        if ((line > 0 || line_start_) && strip_left(text.substr(line)).empty())
            text = text.substr(0, line);
    }
    if (text.empty()) return;
    const size_t here = at_;
    at_ = start;
    add(TokenKind::data, std::string(text));
    at_ = here;
}

void Lexer::data() {
    const size_t start = at_, tag_start = next_tag(at_);
    if (tag_start == kNowhere) {
        add(TokenKind::data, std::string(source_.substr(start)));
        at_ = source_.size();
        return;
    }
    at_ = tag_start;
    if (raw_block(start)) return;
    const char kind = source_[tag_start + 1];
    at_ += 2;
    const char sign = take_sign();
    add_data(start, tag_start, sign, kind != '{');
    line_start_ = false;
    if (kind == '#') return comment();
    const size_t inside = at_;
    at_ = tag_start;
    add(kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin, {});
    at_ = inside;
    tag(kind == '{');
}

void Lexer::comment() {
    if (at_ == source_.size()) return;  // Jinja lets a comment begin as the last thing
    const size_t start = at_, close = source_.find("#}", at_);
    if (close == kNowhere) fail("Missing end of comment tag");
    at_ = close + 2;
    const char sign = close > start ? source_[close - 1] : '\0';
    if (sign == '-')
        skip_spaces();
    else if (sign != '+' && peek() == '\n')
        ++at_;
    after_tag(close);
}

// {% raw %} ... {% endraw %}: everything between is data. False if there is no such tag here.
bool Lexer::raw_block(size_t data_start) {
    const size_t tag_start = at_;
    const auto give_up = [&] {
        at_ = tag_start;
        return false;
    };
    if (!here("{%")) return false;
    at_ += 2;
    const char sign = take_sign();
    skip_spaces();
    if (!here("raw")) return give_up();
    at_ += 3;
    skip_spaces();
    if (here("-%}")) {
        at_ += 3;
        skip_spaces();
    } else if (here("%}")) {
        at_ += 2;
    } else {
        return give_up();
    }
    const size_t content = at_;
    add_data(data_start, tag_start, sign, true);
    after_tag(tag_start);
    for (size_t end = source_.find("{%", content); end != kNowhere;
         end = source_.find("{%", end + 1)) {
        at_ = end + 2;
        const char end_sign = take_sign();
        skip_spaces();
        if (!here("endraw")) continue;
        at_ += 6;
        skip_spaces();
        const char close = peek() == '-' || peek() == '+' ? peek() : '\0';
        if (close) ++at_;
        if (!here("%}")) continue;
        at_ += 2;
        if (close == '-')
            skip_spaces();
        else if (!close && peek() == '\n')
            ++at_;
        add_data(content, end, end_sign, true);
        after_tag(end);
        return true;
    }
    at_ = content;
    if (content == source_.size()) return true;  // as with comments
    fail("Missing end of raw directive");
}

void Lexer::tag(bool is_variable) {
    while (at_ < source_.size()) {
        if (open_.empty() && tag_end(is_variable)) return;
        size_t next = at_;
        if (is_space(next_code_point(source_, next))) {
            at_ = next;
            continue;
        }
        if (number() || name() || string()) continue;
        op();
    }
}

bool Lexer::tag_end(bool is_variable) {
    const size_t start = at_;
    const char sign = peek() == '-' || (peek() == '+' && !is_variable) ? peek() : '\0';
    if (source_.substr(at_ + (sign ? 1 : 0), 2) != (is_variable ? "}}" : "%}")) return false;
    add(is_variable ? TokenKind::variable_end : TokenKind::block_end, {});
    at_ += sign ? 3 : 2;
    if (sign == '-')
        skip_spaces();
    else if (!sign && !is_variable && peek() == '\n')
        ++at_;
    after_tag(start);
    return true;
}

bool Lexer::number() {
    if (!is_ascii_digit(peek())) return false;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    const NumberLiteral literal = scan_number(source_.substr(at_), !after_dot);
    add(literal.is_real ? TokenKind::real : TokenKind::integer,
        std::string(source_.substr(at_, literal.size)));
    at_ += literal.size;
    return true;
}

bool Lexer::name() {
    size_t end = at_;
    bool valid = true;
    while (end < source_.size()) {
        size_t next = end;
        const char32_t c = next_code_point(source_, next);
        if (!is_word(c) && !is_identifier_part(c)) break;
        valid &= end == at_ ? is_identifier_start(c) : is_identifier_part(c);
        end = next;
    }
    if (end == at_) return false;
    if (!valid) fail("Invalid character in identifier");
    add(TokenKind::name, std::string(source_.substr(at_, end - at_)));
    at_ = end;
    return true;
}

bool Lexer::string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;
    const std::string_view raw = source_.substr(at_ + 1, end - at_ - 1);
    std::string value;
    if (const std::string problem = unescape_literal(raw, value); !problem.empty()) fail(problem);
    add(TokenKind::string, std::move(value));
    at_ = end + 1;
    return true;
}

void Lexer::op() {
    constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "*",
                                               "/",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                               ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](std::string_view o) { return here(o); });
    if (found == std::end(kOperators)) {
        size_t next = at_;
        next_code_point(source_, next);
        fail(fmt::format("unexpected char {} at {}", repr_of_text(source_.substr(at_, next - at_)),
                         count_code_points(source_.substr(0, at_))));
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
        if (open_.empty()) fail(fmt::format("unexpected '{}'", c));
        if (open_.back() != c) fail(fmt::format("unexpected '{}', expected '{}'", c, open_.back()));
        open_.pop_back();
    }
    add(TokenKind::op, std::string(*found));
    at_ += found->size();
}

}  // namespace

std::string normalized_source(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
        if (source[i] == '\r') {
            if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
            out += '\n';
        } else {
            out += source[i];
        }
    }
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

std::vector<Token> tokenize(std::string_view source) {
    return Lexer(source).run();
}

}  // namespace exl3::jinja
