#pragma once
#include "text/jinja_ast.h"

namespace exl3::jinja {

/// Decides where each variable of a parsed template lives, before anything runs. That is how
/// Jinja does it, and templates can tell: a name assigned anywhere in a scope is a variable of
/// that scope from its start, with the value of the enclosing variable, if there is one.
/// Throws Failure{syntax}: unknown filters and tests that are reached unconditionally, break
/// outside of a loop, assignment to `loop`.
void bind_variables(Tree& tree);

}  // namespace exl3::jinja
