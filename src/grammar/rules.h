#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_set.h"

namespace exl3 {

/// A context-free grammar over characters while it is being put together: rules, each an expression
/// that may call others. The front ends (JSON schema, regular expressions, GBNF) write it,
/// GrammarAutomaton compiles it. Expressions are numbers that mean something in their Rules only.
class Rules {
public:
    using Expr = int;
    using Rule = int;
    static constexpr int kNoLimit = -1;

    Expr empty() { return sequence({}); }  ///< the empty text
    Expr never() { return any_of({}); }    ///< no text at all
    Expr text(std::string_view bytes);     ///< exactly these bytes
    /// One special token, which no text spells: a tag such as <|channel|>.
    Expr token(int32_t id) { return text(special_bytes(id)); }
    /// What stands for a special token in a TokenTrie: bytes that are no UTF-8.
    static std::string special_bytes(int32_t id);
    Expr one_of(const std::vector<std::string>& texts);  ///< one of many texts
    Expr chars(CharSet set);                             ///< one character of a set
    Expr sequence(std::vector<Expr> parts);
    Expr any_of(std::vector<Expr> choices);
    Expr repeat(Expr e, int min, int max = kNoLimit);  ///< max < min: as often as min or more
    Expr optional(Expr e) { return repeat(e, 0, 1); }
    Expr call(Rule rule);

    Rule add_rule(std::string name);
    /// A rule that is defined at once.
    Rule add_rule(std::string name, Expr e) {
        const Rule r = add_rule(std::move(name));
        define(r, e);
        return r;
    }
    void define(Rule rule, Expr e);
    bool defined(Rule rule) const;

    enum class Kind : uint8_t { text, one_of, chars, sequence, any_of, repeat, call };
    struct Node {
        Kind kind = Kind::text;
        std::string bytes;               // text
        std::vector<std::string> texts;  // one_of
        CharSet set;                     // chars
        std::vector<Expr> parts;         // sequence, any_of, repeat
        int min = 0, max = kNoLimit;     // repeat
        Rule rule = -1;                  // call
    };
    struct Definition {
        std::string name;
        Expr body = -1;
    };
    const Node& node(Expr e) const { return nodes_[static_cast<size_t>(e)]; }
    const std::vector<Definition>& rules() const { return rules_; }
    size_t size() const { return nodes_.size(); }

private:
    Expr add(Node node);
    std::vector<Node> nodes_;
    std::vector<Definition> rules_;
};

}  // namespace exl3
