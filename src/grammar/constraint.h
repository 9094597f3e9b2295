#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/token_trie.h"
#include "io/json.h"
#include "sample/token_mask.h"

namespace exl3 {

/// A compiled grammar over one vocabulary: what an answer must look like. Immutable to its users
/// and shared by jobs; the masks that they work out are remembered in it.
class Constraint {
public:
    /// Each throws Error{invalid_argument} naming what is wrong or unknown and where.
    /// The whole answer matches a regular expression (docs/grammars.md lists the syntax).
    static std::shared_ptr<Constraint> regex(std::string_view pattern,
                                             std::shared_ptr<const TokenTrie> trie);
    /// A grammar of rules `name ::= ...` whose first is `root`.
    static std::shared_ptr<Constraint> gbnf(std::string_view grammar,
                                            std::shared_ptr<const TokenTrie> trie);
    /// A grammar in Lark's notation whose first rule is `start`.
    static std::shared_ptr<Constraint> lark(std::string_view grammar,
                                            std::shared_ptr<const TokenTrie> trie);
    /// JSON that a schema accepts (docs/grammars.md lists the keywords).
    static std::shared_ptr<Constraint> json_schema(const Json& schema,
                                                   std::shared_ptr<const TokenTrie> trie);
    /// Any JSON object.
    static std::shared_ptr<Constraint> json_object(std::shared_ptr<const TokenTrie> trie);
    /// One of several texts.
    static std::shared_ptr<Constraint> choices(const std::vector<std::string>& texts,
                                               std::shared_ptr<const TokenTrie> trie);
    static std::shared_ptr<Constraint> of(const Rules& rules, Rules::Rule root,
                                          std::shared_ptr<const TokenTrie> trie);
    ~Constraint();
    const TokenTrie& trie() const;

private:
    friend class ConstraintState;
    Constraint(const Rules& rules, Rules::Rule root, std::shared_ptr<const TokenTrie> trie);
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// One answer under a constraint. One thread at a time; states of one Constraint may run in
/// different threads.
class ConstraintState {
public:
    explicit ConstraintState(std::shared_ptr<Constraint> constraint);
    ~ConstraintState();
    ConstraintState(ConstraintState&&) noexcept;
    ConstraintState& operator=(ConstraintState&&) noexcept;

    /// The tokens that may come next: ordinary ones that the grammar can still complete, and the
    /// end tokens where it may end. Never empty.
    void mask(TokenMask& out);
    /// Takes a token. False, and nothing changes, if the mask does not allow it.
    bool accept(int32_t token);
    /// Takes text that precedes the answer's first token (a continued answer). All or nothing.
    bool accept_text(std::string_view text);

    bool may_end() const;   ///< what there is matches
    bool must_end() const;  ///< and nothing can follow: the job is done
    /// Undoes the last n accepted tokens or texts.
    void undo(int n);
    int accepted() const;  ///< tokens and texts so far

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace exl3
