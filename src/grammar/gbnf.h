#pragma once
#include <string_view>

#include "grammar/rules.h"

namespace exl3 {

/// Reads a grammar in the notation of llama.cpp: rules `name ::= alternatives`, "text", [classes],
/// ., other rules, (groups), | * + ? {m} {m,} {m,n}, # comments. A rule goes on in the next line
/// where it is not complete, within parentheses, or after |. Returns the rule `root`. Throws
/// Error{invalid_argument} with line and column.
Rules::Rule parse_gbnf(Rules& rules, std::string_view grammar);

}  // namespace exl3
