#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/stacks.h"
#include "grammar/token_trie.h"
#include "sample/token_mask.h"

namespace exl3 {

/// Which tokens each place of a grammar allows, worked out once per place.
///
/// A stack is taken apart: its innermost position allows some tokens by itself and, for some
/// beginnings of tokens (nodes of the trie), its rule ends in the middle of the token. From those
/// nodes the position below goes on, and so on. What a position does with a set of nodes depends on
/// no other part of the stack, so it is remembered under (set of nodes, position), however deep
/// the stack is. One thread at a time.
class MaskCache {
public:
    MaskCache(const GrammarAutomaton& automaton, std::shared_ptr<const TokenTrie> trie);

    /// Adds the tokens that a stack allows to `mask`, which has a bit for every token. End tokens
    /// are not looked at.
    /// @param pool, top  the stack
    void allow(const StackPool& pool, int top, TokenMask& mask);

    size_t entries() const { return entries_.size(); }

private:
    using NodeSet = int;  ///< index into sets_
    struct Entry {
        std::vector<int32_t> tokens;  ///< that it allows; where there are many, `mask` instead
        TokenMask mask;
        NodeSet left = 0;  ///< where its rule ends
    };
    struct Key {
        NodeSet from;
        GrammarPosition at;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        size_t operator()(const Key& k) const;
    };
    /// Byte by byte successors of a set of stacks with nothing below; filled as they are needed.
    struct Local {
        GrammarStacks stacks;
        std::vector<int32_t> next;  ///< 256, kUnknown where not yet known
    };
    static constexpr int32_t kUnknown = -2, kDead = -1;

    const Entry& entry(NodeSet from, GrammarPosition at);
    Entry work_out(NodeSet from, GrammarPosition at);
    /// Counts that no token can tell apart become one.
    GrammarPosition representative(GrammarPosition at) const;
    int32_t local(const GrammarStacks& stacks);
    int32_t after(int32_t local, uint8_t byte);
    NodeSet intern(std::vector<int32_t> nodes);

    const GrammarAutomaton& automaton_;
    std::shared_ptr<const TokenTrie> trie_;
    StackPool pool_;
    std::vector<Local> locals_;
    std::map<std::pair<std::vector<int>, bool>, int32_t> local_index_;
    std::vector<std::vector<int32_t>> sets_;
    std::map<std::vector<int32_t>, NodeSet> set_index_;
    std::unordered_map<Key, std::unique_ptr<Entry>, Hash> entries_;
};

}  // namespace exl3
