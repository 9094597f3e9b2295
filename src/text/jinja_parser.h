#pragma once
#include <string_view>

#include "text/jinja_ast.h"

namespace exl3::jinja {

/// Parses a normalized source (jinja_lexer.h) into `tree`, variables not yet bound.
/// Throws Failure{syntax} or, for tags that need other templates, Failure{unsupported}.
void parse(std::string_view source, Tree& tree);

}  // namespace exl3::jinja
