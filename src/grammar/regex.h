#pragma once
#include <functional>
#include <string_view>

#include "grammar/rules.h"

namespace exl3 {

struct RegexOptions {
    /// An alternative that does not begin with ^ may be preceded by anything, one that does not end
    /// with $ followed by anything (JSON Schema's `pattern`). Otherwise the whole text matches.
    bool search = false;
    /// How one character of a set is written; none: as itself.
    std::function<Rules::Expr(Rules&, const CharSet&)> chars;
};

/// A regular expression as a grammar expression: literals, ., [classes], \d \w \s and their
/// negations, \p{L} and other general categories, escapes, groups (also non-capturing and named),
/// |, * + ? {m} {m,} {m,n} (greedy or not: the language is the same), ^ and $ at the ends of an
/// alternative. Throws Error{invalid_argument} with the position for anything else:
/// back-references, look-around, \b.
Rules::Expr regex_expr(Rules& rules, std::string_view pattern, const RegexOptions& options);

/// The characters of a class escape (d, w, s, D, W, S), or of a general category such as "Lu".
CharSet class_of(char32_t letter);

}  // namespace exl3
