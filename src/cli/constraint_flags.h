#pragma once
#include <memory>
#include <string>

#include "cli/command.h"
#include "grammar/grammar_constraint.h"

namespace exl3::cli {

/// What the text must look like: one of a JSON schema, a grammar and a regular expression.
struct ConstraintFlags {
    std::string json_schema, grammar, regex;
    bool given() const { return !json_schema.empty() || !grammar.empty() || !regex.empty(); }
    /// Null where none is given. Throws Error{invalid_argument} naming what is wrong in it,
    /// Error{io} for a file that cannot be read.
    /// @param ends  ids that end a text
    std::shared_ptr<TokenConstraint> make(const Tokenizer& tokenizer,
                                          std::vector<int32_t> ends) const;
};
/// --json-schema, --grammar and --regex.
void add_constraint_flags(Command& command, ConstraintFlags& flags);

}  // namespace exl3::cli
