#include "cli/constraint_flags.h"

#include "cli/input.h"

namespace exl3::cli {
namespace {

// The value of a flag, or the content of the file behind @.
std::string text_or_file(const std::string& value) {
    return value.starts_with('@') ? read_input(value.substr(1)) : value;
}

}  // namespace

std::shared_ptr<TokenConstraint> ConstraintFlags::make(const Tokenizer& tokenizer,
                                                       std::vector<int32_t> ends) const {
    if (!given()) return nullptr;
    const auto trie = TokenTrie::of(tokenizer, std::move(ends));
    std::shared_ptr<Constraint> c;
    if (!json_schema.empty()) {
        c = Constraint::json_schema(parse_json(text_or_file(json_schema), "--json-schema").value(),
                                    trie);
    } else if (!regex.empty()) {
        c = Constraint::regex(text_or_file(regex), trie);
    } else {
        const std::string text = text_or_file(grammar);
        c = text.find("::=") != std::string::npos ? Constraint::gbnf(text, trie)
                                                  : Constraint::lark(text, trie);
    }
    return std::make_shared<GrammarConstraint>(std::move(c));
}

void add_constraint_flags(Command& command, ConstraintFlags& flags) {
    auto* group = command.app.add_option_group("form", "What the text must look like");
    group->add_option("--json-schema", flags.json_schema, "A JSON schema")->type_name("TEXT|@FILE");
    group->add_option("--grammar", flags.grammar, "A grammar, with ::= in GBNF, else in Lark")
        ->type_name("TEXT|@FILE");
    group->add_option("--regex", flags.regex, "A regular expression")->type_name("TEXT|@FILE");
    group->require_option(0, 1);
}

}  // namespace exl3::cli
