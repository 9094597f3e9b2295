#include "text/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/unicode.h"

namespace exl3::text {
namespace {

constexpr size_t kMaxDepth = 200;

const char* name_of(JsonValue::Kind kind) {
    switch (kind) {
        case JsonValue::Kind::null: return "null";
        case JsonValue::Kind::boolean: return "a boolean";
        case JsonValue::Kind::number: return "a number";
        case JsonValue::Kind::string: return "a string";
        case JsonValue::Kind::array: return "an array";
        case JsonValue::Kind::object: return "an object";
    }
    return "?";
}

// Exactly rounded, as a compiler's constants are.
double power_of_ten(int64_t n) {
    static const std::vector<double> powers = [] {
        std::vector<double> p;
        for (int i = 0; i <= 308; ++i) {
            const std::string text = fmt::format("1e{}", i);
            std::from_chars(text.data(), text.data() + text.size(), p.emplace_back());
        }
        return p;
    }();
    return n > 308 ? HUGE_VAL : powers[static_cast<size_t>(n)];
}

}  // namespace

// ---- JsonValue and JsonNode

JsonValue::JsonValue() = default;
JsonValue::~JsonValue() = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;

const JsonValue* JsonValue::find(std::string_view key) const {
    for (auto it = members.rbegin(); it != members.rend(); ++it)
        if (it->key == key) return it->value.is_null() ? nullptr : &it->value;
    return nullptr;
}

void JsonNode::fail(std::string_view what, Errc code) const {
    throw Error(code, {.file = file_}, fmt::format("key '{}': {}", path_, what));
}

JsonNode JsonNode::at(std::string_view key) const {
    if (!value_->is_object()) fail(fmt::format("is {}, needs an object", name_of(value_->kind)));
    std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
    const JsonValue* found = value_->find(key);
    if (!found)
        throw Error(Errc::invalid_file, {.file = file_}, fmt::format("key '{}': missing", path));
    return {*found, file_, std::move(path)};
}

std::vector<JsonNode> JsonNode::items() const {
    if (!value_->is_array()) fail(fmt::format("is {}, needs an array", name_of(value_->kind)));
    std::vector<JsonNode> nodes;
    for (size_t i = 0; i < value_->items.size(); ++i)
        nodes.emplace_back(value_->items[i], file_, fmt::format("{}[{}]", path_, i));
    return nodes;
}

const std::string& JsonNode::text() const {
    if (!value_->is_string()) fail(fmt::format("is {}, needs a string", name_of(value_->kind)));
    return value_->string;
}

std::string JsonNode::text(std::string_view key, const std::string& otherwise) const {
    return has(key) ? at(key).text() : otherwise;
}

bool JsonNode::flag(std::string_view key, bool otherwise) const {
    if (!has(key)) return otherwise;
    const JsonNode node = at(key);
    if (node.value_->kind != JsonValue::Kind::boolean)
        node.fail(fmt::format("is {}, needs true or false", name_of(node.value_->kind)));
    return node.value_->truth;
}

int64_t JsonNode::as_integer() const {
    const double n = value_->number;
    if (value_->kind != JsonValue::Kind::number || n != std::floor(n) || std::fabs(n) > 9e15)
        fail(fmt::format("is {}, needs an integer", name_of(value_->kind)));
    return static_cast<int64_t>(n);
}

int64_t JsonNode::integer(std::string_view key) const {
    return at(key).as_integer();
}

int64_t JsonNode::integer(std::string_view key, int64_t otherwise) const {
    return has(key) ? integer(key) : otherwise;
}

// ---- JsonReader

JsonReader::JsonReader(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
}

std::string JsonReader::path() const {
    std::string path = base_path_;
    for (const Frame& f : frames_) {
        if (f.is_array) {
            if (f.index >= 0) path += fmt::format("[{}]", f.index);
        } else if (f.key != 0) {
            // Keys are read again only for an error, so that a good file costs no path strings.
            const size_t end = text_.find('"', f.key);
            path += (path.empty() ? "" : ".") + std::string(text_.substr(f.key, end - f.key));
        }
    }
    return path;
}

void JsonReader::fail(std::string_view what) const {
    const std::string at = path();
    throw Error(Errc::invalid_file, {.file = file_, .offset = at_},
                at.empty() ? std::string(what) : fmt::format("key '{}': {}", at, what));
}

void JsonReader::skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
        ++at_;
}

JsonReader::Kind JsonReader::peek() {
    skip_space();
    if (at_ >= text_.size()) fail("needs a value, file ends");
    switch (text_[at_]) {
        case '{': return Kind::object;
        case '[': return Kind::array;
        case '"': return Kind::string;
        case 't':
        case 'f': return Kind::boolean;
        case 'n': return Kind::null;
        default: return Kind::number;
    }
}

void JsonReader::open(char bracket, const char* what) {
    const Kind kind = peek();
    if (text_[at_] != bracket) fail(fmt::format("is {}, needs {}", name_of(kind), what));
    if (frames_.size() >= kMaxDepth) fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    ++at_;
    frames_.push_back({.index = -1, .is_array = bracket == '['});
}

bool JsonReader::next_item(char close) {
    skip_space();
    if (at_ >= text_.size()) fail(fmt::format("needs '{}', file ends", close));
    Frame& frame = frames_.back();
    const bool first = frame.is_array ? frame.index < 0 : frame.key == 0;
    if (text_[at_] == close) {
        ++at_;
        frames_.pop_back();
        return false;
    }
    if (!first) {
        if (text_[at_] != ',')
            fail(fmt::format("found '{}', needs ',' or '{}'", text_[at_], close));
        ++at_;
        skip_space();
    }
    ++frame.index;
    return true;
}

std::string_view JsonReader::read_key() {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != '"') fail("needs a key in quotes");
    frames_.back().key = at_ + 1;
    const std::string_view key = read_string();
    skip_space();
    if (at_ >= text_.size() || text_[at_] != ':') fail("needs ':' after the key");
    ++at_;
    return key;
}

std::string_view JsonReader::string() {
    const Kind kind = peek();
    if (kind != Kind::string) fail(fmt::format("is {}, needs a string", name_of(kind)));
    return read_string();
}

std::string_view JsonReader::read_string() {
    const size_t start = ++at_;
    bool plain = true;  // ASCII without escapes: a view of the input will do
    bool ascii = true;
    scratch_.clear();
    for (size_t copied = start;;) {
        if (at_ >= text_.size()) fail("file ends inside a string");
        const char c = text_[at_];
        if (c == '"') {
            const std::string_view tail = text_.substr(copied, at_ - copied);
            if (!plain) scratch_.append(tail);
            ++at_;
            const std::string_view whole = plain ? tail : std::string_view(scratch_);
            if (ascii || is_valid_utf8(whole)) return whole;
            scratch_ = replace_invalid_utf8(whole);
            return scratch_;
        }
        if (c == '\\') {
            scratch_.append(text_.substr(copied, at_ - copied));
            plain = false;
            read_escape();
            copied = at_;
            continue;
        }
        if (static_cast<unsigned char>(c) < 0x20) fail("control character inside a string");
        if (static_cast<unsigned char>(c) >= 0x80) ascii = false;
        ++at_;
    }
}

uint32_t JsonReader::read_hex4() {
    uint32_t value = 0;
    if (at_ + 4 > text_.size()) fail("file ends inside a \\u escape");
    const char* first = text_.data() + at_;
    const auto [end, ec] = std::from_chars(first, first + 4, value, 16);
    if (ec != std::errc() || end != first + 4) fail("\\u needs four hexadecimal digits");
    at_ += 4;
    return value;
}

void JsonReader::read_escape() {
    if (at_ + 1 >= text_.size()) fail("file ends inside an escape");
    const char c = text_[at_ + 1];
    at_ += 2;
    switch (c) {
        case '"':
        case '\\':
        case '/': scratch_ += c; return;
        case 'b': scratch_ += '\b'; return;
        case 'f': scratch_ += '\f'; return;
        case 'n': scratch_ += '\n'; return;
        case 'r': scratch_ += '\r'; return;
        case 't': scratch_ += '\t'; return;
        case 'u': break;
        default: fail(fmt::format("unknown escape '\\{}'", c));
    }
    uint32_t cp = read_hex4();
    if (cp >= 0xD800 && cp < 0xDC00 && text_.substr(at_, 2) == "\\u") {
        const size_t back = at_;
        at_ += 2;
        const uint32_t low = read_hex4();
        if (low >= 0xDC00 && low < 0xE000)
            cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
        else
            at_ = back;
    }
    append_utf8(scratch_, cp >= 0xD800 && cp < 0xE000 ? kReplacement : cp);
}

// Up to 19 digits as an integer, then one multiplication or division by a power of ten: the
// arithmetic of the JSON reader in the reference implementation. It is up to two units in the last
// place off, and Unigram scores must be off in the same way for ties to fall the same way.
double JsonReader::number() {
    const Kind kind = peek();
    if (kind != Kind::number) fail(fmt::format("is {}, needs a number", name_of(kind)));
    const char found = text_[at_];
    const bool negative = found == '-';
    if (negative) ++at_;
    const auto digit = [&] { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; };
    if (!digit()) fail(fmt::format("found '{}', needs a value", found));
    uint64_t digits = 0;
    int64_t exponent = 0;
    bool full = false;  // further digits do not fit
    const auto read_digits = [&](int64_t per_kept, int64_t per_dropped) {
        for (; digit(); ++at_) {
            const auto d = static_cast<uint64_t>(text_[at_] - '0');
            full = full || digits > (UINT64_MAX - d) / 10;
            if (!full) digits = digits * 10 + d;
            exponent += full ? per_dropped : per_kept;
        }
    };
    read_digits(0, 1);
    if (at_ < text_.size() && text_[at_] == '.') {
        ++at_;
        if (!digit()) fail("needs a digit after '.'");
        read_digits(-1, 0);
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
        ++at_;
        const bool down = at_ < text_.size() && text_[at_] == '-';
        if (down || (at_ < text_.size() && text_[at_] == '+')) ++at_;
        if (!digit()) fail("needs a digit in the exponent");
        int64_t given = 0;
        for (; digit(); ++at_) given = std::min<int64_t>(given * 10 + (text_[at_] - '0'), 100'000);
        exponent += down ? -given : given;
    }
    auto value = static_cast<double>(digits);
    for (; value != 0 && exponent < -308; exponent += 308) value /= 1e308;
    if (value != 0)
        value = exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
    if (!std::isfinite(value)) fail("is too large a number");
    return negative ? -value : value;
}

int64_t JsonReader::integer() {
    const double value = number();
    if (value != std::floor(value) || std::fabs(value) > 9e15) fail("needs an integer");
    return static_cast<int64_t>(value);
}

void JsonReader::word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) fail(fmt::format("needs {}", expected));
    at_ += expected.size();
}

bool JsonReader::boolean() {
    const Kind kind = peek();
    if (kind != Kind::boolean) fail(fmt::format("is {}, needs true or false", name_of(kind)));
    const bool truth = text_[at_] == 't';
    word(truth ? "true" : "false");
    return truth;
}

void JsonReader::null() {
    peek();
    word("null");
}

void JsonReader::skip() {
    switch (peek()) {
        case Kind::null: null(); return;
        case Kind::boolean: boolean(); return;
        case Kind::number: number(); return;
        case Kind::string: string(); return;
        case Kind::array: array([&] { skip(); }); return;
        case Kind::object: object([&](std::string_view) { skip(); }); return;
    }
}

JsonValue JsonReader::value() {
    JsonValue v;
    v.kind = peek();
    switch (v.kind) {
        case Kind::null: null(); break;
        case Kind::boolean: v.truth = boolean(); break;
        case Kind::number: v.number = number(); break;
        case Kind::string: v.string = string(); break;
        case Kind::array: array([&] { v.items.push_back(value()); }); break;
        case Kind::object:
            object([&](std::string_view key) {
                std::string name(key);
                v.members.push_back({std::move(name), value()});
            });
            break;
    }
    return v;
}

void JsonReader::finish() {
    skip_space();
    if (at_ != text_.size()) fail("text after the end of the value");
}

}  // namespace exl3::text
