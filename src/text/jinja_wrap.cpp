// textwrap.wrap, as the wordwrap filter uses it: no tabs expanded, spaces kept inside lines.
#include <algorithm>

#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

using Chars = std::u32string;
using CharsView = std::u32string_view;

bool is_blank(char32_t c) {
    return (c >= 9 && c <= 13) || c == ' ';
}
bool is_letter(char32_t c) {
    return is_word(c) && !is_decimal(c);
}
bool is_word_or_mark(char32_t c) {
    return is_word(c) || c == '!' || c == '"' || c == '\'' || c == '&' || c == '.' || c == ',' ||
           c == '?';
}

/// Cuts text into pieces between which a line may end.
class Splitter {
public:
    explicit Splitter(CharsView text) : text_(text) {}

    std::vector<Chars> pieces(bool at_hyphens) const {
        std::vector<Chars> out;
        for (size_t at = 0; at < text_.size();) {
            const size_t end = piece_end(at, at_hyphens);
            out.emplace_back(text_.substr(at, end - at));
            at = end;
        }
        return out;
    }

private:
    char32_t at(size_t i) const { return i < text_.size() ? text_[i] : 0; }
    bool letter(size_t i) const { return i < text_.size() && is_letter(text_[i]); }

    // Two or more dashes between words; the end of the dashes, or `i` if there is none.
    size_t dashes_end(size_t i) const {
        size_t end = i;
        while (at(end) == '-') ++end;
        const bool between =
            i > 0 && is_word_or_mark(at(i - 1)) && end < text_.size() && is_word(at(end));
        return end - i >= 2 && between ? end : i;
    }
    // A hyphen at `i` that a line may end with.
    bool breaks_at(size_t i) const {
        const bool before = (i >= 2 && letter(i - 1) && letter(i - 2)) ||
                            (i >= 3 && letter(i - 1) && at(i - 2) == '-' && letter(i - 3));
        const bool after = letter(i + 1) && (letter(i + 2) || (at(i + 2) == '-' && letter(i + 3)));
        return before && after;
    }
    size_t piece_end(size_t start, bool at_hyphens) const {
        size_t end = start;
        if (is_blank(text_[start])) {
            while (end < text_.size() && is_blank(text_[end])) ++end;
            return end;
        }
        if (at_hyphens && dashes_end(start) != start) return dashes_end(start);
        for (end = start + 1; end < text_.size() && !is_blank(text_[end]); ++end) {
            if (!at_hyphens || text_[end] != '-') continue;
            if (breaks_at(end)) return end + 1;
            if (dashes_end(end) != end) return end;
        }
        return end;
    }

    CharsView text_;
};

bool all_blank(const Chars& piece) {
    return std::all_of(piece.begin(), piece.end(), is_space);
}

// How much of a piece that is longer than a line goes on the line with `room` left.
size_t cut(const Chars& piece, size_t room, bool at_hyphens) {
    if (!at_hyphens || piece.size() <= room || room == 0) return std::min(room, piece.size());
    const size_t hyphen = CharsView(piece).substr(0, room).rfind('-');
    if (hyphen == CharsView::npos || hyphen == 0) return room;
    const CharsView before = CharsView(piece).substr(0, hyphen);
    return before.find_first_not_of('-') == CharsView::npos ? room : hyphen + 1;
}

std::string encoded(const Chars& line) {
    std::string out;
    for (const char32_t c : line) append_utf8(out, c);
    return out;
}

}  // namespace

std::vector<std::string> wrap_line(Runtime& rt, std::string_view text, const WrapOptions& options) {
    Chars chars;
    for (size_t at = 0; at < text.size();) chars += next_code_point(text, at);
    std::vector<Chars> rest = Splitter(chars).pieces(options.break_on_hyphens);
    std::reverse(rest.begin(), rest.end());

    std::vector<std::string> lines;
    while (!rest.empty()) {
        rt.step();
        std::vector<Chars> line;
        size_t length = 0;
        if (!lines.empty() && all_blank(rest.back())) rest.pop_back();
        while (!rest.empty() && length + rest.back().size() <= options.width) {
            length += rest.back().size();
            line.push_back(std::move(rest.back()));
            rest.pop_back();
        }
        if (!rest.empty() && rest.back().size() > options.width) {
            if (options.break_long_words) {
                const size_t n = cut(rest.back(), options.width - length, options.break_on_hyphens);
                rt.work(4 * rest.back().size());
                line.push_back(rest.back().substr(0, n));
                rest.back().erase(0, n);
            } else if (line.empty()) {
                line.push_back(std::move(rest.back()));
                rest.pop_back();
            }
        }
        if (!line.empty() && all_blank(line.back())) line.pop_back();
        Chars whole;
        for (const Chars& piece : line) whole += piece;
        if (!line.empty()) lines.push_back(encoded(whole));
    }
    return lines;
}

}  // namespace exl3::jinja
