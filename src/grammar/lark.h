#pragma once
#include <string_view>

#include "grammar/rules.h"

namespace exl3 {

/// Reads a grammar in Lark's notation: `rule: ...` and `TERMINAL: ...` with alternatives, "text"
/// and "text"i, /expressions/, "a".."z", groups, [optional parts], * + ? ~n ~n..m, `-> alias`
/// (ignored),
/// `%ignore TERMINAL` (allowed between the parts of rules), `%import common.NAME`, // comments.
/// Returns the rule `start`. Rules that begin with a call of themselves are refused later, as in
/// every notation. Throws Error{invalid_argument} with line and column.
Rules::Rule parse_lark(Rules& rules, std::string_view grammar);

}  // namespace exl3
