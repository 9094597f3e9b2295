#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.h"

namespace exl3 {

/// A place in a grammar: a state, and at a counting state how many repetitions there were.
struct GrammarPosition {
    int state = 0;
    int count = 0;
    bool operator==(const GrammarPosition&) const = default;
};

/// All ways a text so far can be read: the innermost positions of stacks, each waiting for a byte.
struct GrammarStacks {
    static constexpr int kBottom = -1;
    std::vector<int> tops;  ///< nodes of a StackPool, sorted
    bool ended = false;     ///< the whole grammar (or the bottom rule) may end here
    bool dead() const { return tops.empty() && !ended; }
    bool operator==(const GrammarStacks&) const = default;
};

/// The stacks of one grammar, kept as a tree in which equal stacks are one node. Grows with what is
/// asked of it. One thread at a time.
class StackPool {
public:
    explicit StackPool(const GrammarAutomaton& automaton) : automaton_(automaton) {}

    struct Node {
        GrammarPosition at;
        int below = GrammarStacks::kBottom;  ///< where the caller goes on
    };
    const Node& node(int n) const { return nodes_[static_cast<size_t>(n)]; }
    size_t size() const { return nodes_.size(); }

    /// The ways to read nothing from a position with an empty stack below it.
    GrammarStacks begin(GrammarPosition at);
    /// What is left of them after one more byte.
    GrammarStacks after(const GrammarStacks& stacks, uint8_t byte);

private:
    struct Key {
        int state, count, below;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        size_t operator()(const Key& k) const;
    };
    int intern(GrammarPosition at, int below);
    /// Follows everything that reads nothing, from the nodes in open_, into `out`.
    void close(GrammarStacks& out);
    void open(GrammarPosition at, int below);
    void expand(int n, GrammarStacks& out);
    void leave(int below, GrammarStacks& out);

    const GrammarAutomaton& automaton_;
    std::vector<Node> nodes_;
    std::unordered_map<Key, int, Hash> index_;
    std::vector<int> open_;       // scratch of close()
    std::vector<uint32_t> seen_;  // by node: the round in which it was opened
    uint32_t round_ = 0;
};

}  // namespace exl3
