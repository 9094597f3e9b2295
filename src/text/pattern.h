#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "text/json_reader.h"
#include "text/regex.h"

namespace exl3::text {

/// The "pattern" of a component: {"String": "..."}, matched literally, or {"Regex": "..."}.
class Pattern {
public:
    explicit Pattern(std::string literal) : what_(std::move(literal)) {}
    explicit Pattern(Regex regex) : what_(std::move(regex)) {}
    /// `node` is the pattern; errors name its key.
    static Pattern load(const JsonNode& node);

    /// Calls found(Regex::Match) for all matches from left to right.
    template <typename F>
    void for_each(std::string_view text, F&& found) const {
        if (const Regex* regex = std::get_if<Regex>(&what_)) return regex->for_each(text, found);
        const std::string& literal = std::get<std::string>(what_);
        if (literal.empty()) return;
        for (size_t at = text.find(literal); at != text.npos;
             at = text.find(literal, at + literal.size()))
            found(Regex::Match{at, at + literal.size()});
    }

    /// `text` with every match replaced by `content`.
    std::string replace(std::string_view text, std::string_view content) const;

private:
    std::variant<std::string, Regex> what_;
};

/// A Regex from the file; what is wrong with it is reported under the key of `node`.
Regex load_regex(const JsonNode& node);

}  // namespace exl3::text
