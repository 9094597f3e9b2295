#include "grammar/mask_cache.h"

#include <algorithm>

#include "base/random.h"

namespace exl3 {
namespace {

constexpr int kNoNodes = 0, kRoot = 1;  // the first two sets of nodes

}  // namespace

size_t MaskCache::Hash::operator()(const Key& k) const {
    const uint64_t place = static_cast<uint64_t>(static_cast<uint32_t>(k.from)) << 32 |
                           static_cast<uint32_t>(k.at.state);
    return noise64(place, static_cast<uint64_t>(k.at.count));
}

MaskCache::MaskCache(const GrammarAutomaton& automaton, std::shared_ptr<const TokenTrie> trie)
    : automaton_(automaton), trie_(std::move(trie)), pool_(automaton) {
    intern({});
    intern({0});
}

MaskCache::NodeSet MaskCache::intern(std::vector<int32_t> nodes) {
    const auto [it, fresh] =
        set_index_.try_emplace(std::move(nodes), static_cast<NodeSet>(sets_.size()));
    if (fresh) sets_.push_back(it->first);
    return it->second;
}

int32_t MaskCache::local(const GrammarStacks& stacks) {
    if (stacks.dead()) return kDead;
    const auto [it, fresh] =
        local_index_.try_emplace({stacks.tops, stacks.ended}, static_cast<int32_t>(locals_.size()));
    if (fresh) locals_.push_back({stacks, std::vector<int32_t>(256, kUnknown)});
    return it->second;
}

int32_t MaskCache::after(int32_t from, uint8_t byte) {
    const int32_t known = locals_[static_cast<size_t>(from)].next[byte];
    if (known != kUnknown) return known;
    const int32_t to = local(pool_.after(locals_[static_cast<size_t>(from)].stacks, byte));
    locals_[static_cast<size_t>(from)].next[byte] = to;
    return to;
}

GrammarPosition MaskCache::representative(GrammarPosition at) const {
    const auto& s = automaton_.state(at.state);
    if (s.counter < 0) return at;
    const auto& c = automaton_.counter(s);
    const int reach = trie_->longest() + 1;  // repetitions within one token, and one to spare
    const auto far_from_most = [&](int count) { return c.max < 0 || c.max - count > reach; };
    if (!far_from_most(at.count)) return at;
    if (at.count >= c.min) return {at.state, far_from_most(c.min) ? c.min : at.count};
    return c.min - at.count > reach ? GrammarPosition{at.state, 0} : at;
}

MaskCache::Entry MaskCache::work_out(NodeSet from, GrammarPosition at) {
    const auto& nodes = trie_->nodes();
    const int32_t begin = local(pool_.begin(at));
    Entry e;
    std::vector<int32_t> left;
    std::vector<int32_t> path(static_cast<size_t>(trie_->longest()) + 1);  // locals, by depth
    const auto meet = [&](int32_t node, int32_t here) {
        const GrammarStacks& stacks = locals_[static_cast<size_t>(here)].stacks;
        if (stacks.ended) left.push_back(node);
        if (stacks.tops.empty()) return;
        const auto tokens = trie_->tokens_at(nodes[static_cast<size_t>(node)]);
        e.tokens.insert(e.tokens.end(), tokens.begin(), tokens.end());
    };
    for (const int32_t first : sets_[static_cast<size_t>(from)]) {
        if (begin == kDead) break;
        const TokenTrie::Node& top = nodes[static_cast<size_t>(first)];
        path[top.depth] = begin;
        meet(first, begin);
        for (int32_t i = first + 1; i < top.after;) {
            const TokenTrie::Node& n = nodes[static_cast<size_t>(i)];
            const int32_t here = after(path[n.depth - 1u], n.byte);
            if (here == kDead) {
                i = n.after;
                continue;
            }
            path[n.depth] = here;
            meet(i, here);
            ++i;
        }
    }
    // One token may be met below several nodes of the set.
    std::sort(left.begin(), left.end());
    left.erase(std::unique(left.begin(), left.end()), left.end());
    e.left = intern(std::move(left));
    if (e.tokens.size() > static_cast<size_t>(trie_->tokens()) / 64) {
        e.mask = TokenMask(trie_->tokens());
        for (const int32_t t : e.tokens) e.mask.set(t);
        e.tokens = {};
    }
    return e;
}

const MaskCache::Entry& MaskCache::entry(NodeSet from, GrammarPosition at) {
    auto& place = entries_[{from, at}];
    if (!place) place = std::make_unique<Entry>(work_out(from, at));
    return *place;
}

void MaskCache::allow(const StackPool& pool, int top, TokenMask& mask) {
    NodeSet from = kRoot;
    for (int n = top; from != kNoNodes; n = pool.node(n).below) {
        if (n == GrammarStacks::kBottom) {
            // The grammar ends together with these tokens.
            for (const int32_t node : sets_[static_cast<size_t>(from)])
                for (const int32_t t : trie_->tokens_at(trie_->nodes()[static_cast<size_t>(node)]))
                    mask.set(t);
            return;
        }
        const Entry& e = entry(from, representative(pool.node(n).at));
        for (const int32_t t : e.tokens) mask.set(t);
        for (size_t i = 0; i < e.mask.words.size(); ++i) mask.words[i] |= e.mask.words[i];
        from = e.left;
    }
}

}  // namespace exl3
