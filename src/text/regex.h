#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace exl3::text {

/// A compiled regular expression in Oniguruma's Ruby syntax (see regex_syntax.h), run by PCRE2 with
/// its JIT where the machine has one. Texts must be valid UTF-8. Matching is const and thread-safe.
class Regex {
public:
    /// Throws Error{unsupported}, quoting the expression.
    explicit Regex(std::string_view pattern);
    /// Matches `text` literally.
    static Regex literal(std::string_view text);
    ~Regex();
    Regex(Regex&&) noexcept;
    Regex& operator=(Regex&&) noexcept;

    struct Match {
        size_t begin = 0, end = 0;
    };
    /// The first match that begins at or after `from`. Throws Error{invalid_argument} where the
    /// expression needs more steps than the limit, so that no text can hang the process.
    std::optional<Match> search(std::string_view text, size_t from) const;

    /// Calls found(Match) for all matches from left to right. They do not overlap, and an empty
    /// match right behind another match does not count.
    template <typename F>
    void for_each(std::string_view text, F&& found) const {
        size_t from = 0, last_end = std::string_view::npos;
        while (from <= text.size()) {
            const std::optional<Match> m = search(text, from);
            if (!m) return;
            if (m->begin == m->end && m->end == last_end) {
                from = after(text, from);
                continue;
            }
            from = last_end = m->end;
            found(*m);
        }
    }

private:
    struct Code;
    explicit Regex(std::unique_ptr<Code> code);
    static size_t after(std::string_view text, size_t i);  // one code point further
    std::unique_ptr<Code> code_;
};

}  // namespace exl3::text
