#pragma once
#include "grammar/rules.h"
#include "io/json.h"

namespace exl3 {

/// The JSON texts that a schema accepts, as a grammar expression. Properties come in the order of
/// the schema; layout is JsonText::space(). docs/grammars.md lists the keywords. Where a schema
/// leaves more open than a grammar should (any additional property, any number of digits), the
/// grammar takes a part of it: what matches the grammar always matches the schema. Throws
/// Error{invalid_argument} naming the place and the keyword that is malformed or not supported.
Rules::Expr json_schema_expr(Rules& rules, const Json& schema);

/// A text of a string format ("date-time", "uuid", ...) without quotes; never() for unknown ones.
Rules::Expr json_format(Rules& rules, const std::string& format);
bool is_json_format(const std::string& format);

}  // namespace exl3
