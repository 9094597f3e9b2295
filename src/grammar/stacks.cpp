#include "grammar/stacks.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace exl3 {

size_t StackPool::Hash::operator()(const Key& k) const {
    const uint64_t place = static_cast<uint64_t>(static_cast<uint32_t>(k.state)) << 32 |
                           static_cast<uint32_t>(k.below);
    return noise64(place, static_cast<uint64_t>(k.count));
}

int StackPool::intern(GrammarPosition at, int below) {
    const auto [it, fresh] =
        index_.try_emplace({at.state, at.count, below}, static_cast<int>(nodes_.size()));
    if (fresh) {
        nodes_.push_back({at, below});
        seen_.push_back(0);
    }
    return it->second;
}

void StackPool::open(GrammarPosition at, int below) {
    const int n = intern(at, below);
    uint32_t& seen = seen_[static_cast<size_t>(n)];
    if (seen == round_) return;
    seen = round_;
    open_.push_back(n);
}

void StackPool::leave(int below, GrammarStacks& out) {
    if (below == GrammarStacks::kBottom) {
        out.ended = true;
        return;
    }
    const Node n = node(below);
    open(n.at, n.below);
}

void StackPool::expand(int n, GrammarStacks& out) {
    const Node node = this->node(n);  // a copy: opening others moves the nodes
    const auto& s = automaton_.state(node.at.state);
    if (!s.edges.empty()) out.tops.push_back(n);
    for (const int j : s.jumps) open({j, 0}, node.below);
    for (const auto& c : s.calls)
        open({c.start, 0}, c.tail ? node.below : intern({c.back, 0}, node.below));
    if (s.ends) leave(node.below, out);
    if (s.counter < 0) return;
    const auto& c = automaton_.counter(s);
    if (node.at.count >= c.min) open({c.next, 0}, node.below);
    if (c.max < 0 || node.at.count < c.max) {
        // Without a limit only reaching the least matters.
        const int count = c.max < 0 ? std::min(node.at.count + 1, c.min) : node.at.count + 1;
        open({c.body, 0}, intern({node.at.state, count}, node.below));
    }
}

void StackPool::close(GrammarStacks& out) {
    while (!open_.empty()) {
        const int n = open_.back();
        open_.pop_back();
        expand(n, out);
    }
    std::sort(out.tops.begin(), out.tops.end());
}

GrammarStacks StackPool::begin(GrammarPosition at) {
    GrammarStacks out;
    ++round_;
    open(at, GrammarStacks::kBottom);
    close(out);
    return out;
}

GrammarStacks StackPool::after(const GrammarStacks& stacks, uint8_t byte) {
    GrammarStacks out;
    ++round_;
    for (const int n : stacks.tops) {
        const Node node = this->node(n);
        for (const auto& e : automaton_.state(node.at.state).edges)
            if (e.first <= byte && byte <= e.last) open({e.to, 0}, node.below);
    }
    close(out);
    return out;
}

}  // namespace exl3
