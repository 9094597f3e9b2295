#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace exl3::text {
namespace {

// Up to here scanning all pairs for the lowest rank beats a heap (bench/bench_tokenizer).
constexpr size_t kShortWord = 32;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

uint64_t mix(uint64_t pair) {
    pair *= 0x9E3779B97F4A7C15u;
    return pair ^ pair >> 32;
}

}  // namespace

Bpe::Bpe(Vocab vocab, BpeOptions options) : options_(std::move(options)) {
    vocab_ = std::move(vocab);
    unk_token_ = options_.unk_token;
    if (!unk_token_.empty()) unk_id_ = vocab_.find(unk_token_);
    const auto bound = static_cast<size_t>(vocab_.id_bound());
    whole_ = std::make_unique<std::atomic<uint8_t>[]>(bound);
    byte_ids_.fill(-1);
    if (options_.raw_bytes) {
        raw_.reserve(vocab_.size());
        for (int32_t id = 0; id < vocab_.id_bound(); ++id)
            if (vocab_.has(id))
                if (const auto bytes = bytes_of_stand_ins(vocab_.text(id))) raw_.set(*bytes, id);
        for (size_t b = 0; b < 256; ++b) {
            const char byte = static_cast<char>(b);
            byte_ids_[b] = raw_.find({&byte, 1});
        }
    } else if (options_.byte_fallback) {
        for (size_t b = 0; b < 256; ++b) byte_ids_[b] = vocab_.find(fmt::format("<0x{:02X}>", b));
    }
}

// ---- The merge table

void Bpe::reserve_merges(size_t n) {
    grow_merges(std::bit_ceil(n * 2 + 16));
}

void Bpe::grow_merges(size_t slots) {
    if (slots <= merges_.size()) return;
    std::vector<MergeSlot> larger(slots);
    for (const MergeSlot& s : merges_)
        if (s.pair != kNoPair) insert_slot(larger, s.pair, s.merge);
    merges_ = std::move(larger);
}

void Bpe::insert_slot(std::vector<MergeSlot>& slots, uint64_t pair, Merge merge) const {
    const size_t mask = slots.size() - 1;
    size_t at = mix(pair) & mask;
    while (slots[at].pair != kNoPair && slots[at].pair != pair) at = (at + 1) & mask;
    slots[at] = {pair, merge};
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
    const uint64_t pair = pair_of(left, right);
    const size_t mask = merges_.size() - 1;
    for (size_t at = mix(pair) & mask;; at = (at + 1) & mask) {
        if (merges_[at].pair == pair) return &merges_[at].merge;
        if (merges_[at].pair == kNoPair) return nullptr;
    }
}

void Bpe::add_merge(int32_t left, int32_t right, uint32_t rank, int32_t result) {
    if ((++merge_count_ + 1) * 2 > merges_.size())
        grow_merges(std::max<size_t>(16, merges_.size() * 2));
    insert_slot(merges_, pair_of(left, right), {rank, result});
}

std::optional<size_t> Bpe::add_merges(std::span<const MergeText> merges, uint32_t first_rank) {
    struct Hashes {
        uint64_t left, right, whole;
    };
    std::vector<Hashes> hashes(merges.size());
    std::string whole;
    const auto join = [&](const MergeText& m) {
        whole = m.left;
        whole += std::string_view(m.right).substr(std::min(options_.prefix.size(), m.right.size()));
    };
    for (size_t i = 0; i < merges.size(); ++i) {
        join(merges[i]);
        hashes[i] = {hash_bytes(merges[i].left), hash_bytes(merges[i].right), hash_bytes(whole)};
        for (const uint64_t hash : {hashes[i].left, hashes[i].right, hashes[i].whole})
            vocab_.table().prefetch(hash);
    }
    for (size_t i = 0; i < merges.size(); ++i) {
        join(merges[i]);
        const int32_t left = vocab_.find(merges[i].left, hashes[i].left);
        const int32_t right = vocab_.find(merges[i].right, hashes[i].right);
        const int32_t result = vocab_.find(whole, hashes[i].whole);
        if (left < 0 || right < 0 || result < 0) return i;
        add_merge(left, right, first_rank + static_cast<uint32_t>(i), result);
    }
    return std::nullopt;
}

void Bpe::finish() {
    if (merges_.empty()) grow_merges(16);
    find_safe_cuts();
}

// SentencePiece-style files give the whole text to the model as one piece. Where no merge can make
// a token that has U+2581 behind some other character, the text may be cut before each U+2581
// without changing the result, and the words between the cuts are cached.
void Bpe::find_safe_cuts() {
    if (options_.raw_bytes || !options_.prefix.empty() || !options_.suffix.empty()) return;
    if (vocab_.find(kSpaceMark) < 0) return;
    for (const MergeSlot& s : merges_) {
        if (s.pair == kNoPair) continue;
        const std::string_view text = vocab_.text(s.merge.result);
        for (size_t at = text.find(kSpaceMark, 1); at != text.npos;
             at = text.find(kSpaceMark, at + 1)) {
            size_t before = previous_index(text, at);
            no_cut_after_.push_back(next_code_point(text, before));
        }
    }
    no_cut_after_.push_back(0x2581);  // runs of them stay whole
    std::sort(no_cut_after_.begin(), no_cut_after_.end());
    no_cut_after_.erase(std::unique(no_cut_after_.begin(), no_cut_after_.end()),
                        no_cut_after_.end());
    can_cut_ = true;
}

// ---- Encoding

size_t Bpe::next_cut(std::string_view piece, size_t from) const {
    for (size_t at = piece.find(kSpaceMark, from + 1); at != piece.npos;
         at = piece.find(kSpaceMark, at + 1)) {
        size_t before = previous_index(piece, at);
        const char32_t c = next_code_point(piece, before);
        if (!std::binary_search(no_cut_after_.begin(), no_cut_after_.end(), c)) return at;
    }
    return piece.size();
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
    if (piece.empty()) return;
    if (!can_cut_) return encode_word(piece, ids);
    if (options_.ignore_merges)
        if (const int32_t id = vocab_.find(piece); id >= 0) {
            ids.push_back(id);
            return;
        }
    for (size_t at = 0; at < piece.size();) {
        const size_t cut = next_cut(piece, at);
        encode_word(piece.substr(at, cut - at), ids);
        at = cut;
    }
}

void Bpe::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    const uint64_t hash = hash_bytes(word);
    const int32_t whole = options_.raw_bytes ? raw_.find(word, hash) : vocab_.find(word, hash);
    std::atomic<uint8_t>* known = nullptr;
    if (whole >= 0) {
        if (options_.ignore_merges && !can_cut_) {
            ids.push_back(whole);
            return;
        }
        known = &whole_[static_cast<size_t>(whole)];
        if (known->load(std::memory_order_relaxed) == 1) {
            ids.push_back(whole);
            return;
        }
    }
    const bool cacheable = word.size() <= WordCache::kMaxWordBytes;
    if (cacheable && cache_.find(word, hash, ids)) return;

    thread_local std::vector<int32_t> symbols;
    symbols.clear();
    symbols_of(word, symbols);
    if (symbols.size() <= kShortWord)
        merge_short(symbols);
    else
        merge_long(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
    if (known && symbols.size() == 1 && symbols[0] == whole)
        known->store(1, std::memory_order_relaxed);
    else if (cacheable)
        cache_.store(word, hash, symbols.data(), symbols.size());
}

void Bpe::symbols_of(std::string_view word, std::vector<int32_t>& symbols) const {
    if (!options_.raw_bytes) return text_symbols(word, symbols);
    bool pending_unk = false;
    for (const char c : word) {
        const int32_t id = byte_ids_[static_cast<uint8_t>(c)];
        if (id >= 0) {
            symbols.push_back(id);
            pending_unk = false;
        } else if (unk_id_ >= 0 && !(pending_unk && options_.fuse_unk)) {
            symbols.push_back(unk_id_);
            pending_unk = true;
        }
    }
}

void Bpe::text_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
    // An unk waits until the next known symbol, so byte tokens can overtake it. That is how the
    // reference implementation behaves.
    bool pending_unk = false;
    const auto flush = [&] {
        if (pending_unk) symbols.push_back(unk_id_);
        pending_unk = false;
    };
    std::string decorated;
    for (size_t at = 0; at < word.size();) {
        const size_t start = at;
        at += utf8_length(word[at]);
        std::string_view symbol = word.substr(start, at - start);
        if ((start > 0 && !options_.prefix.empty()) ||
            (at == word.size() && !options_.suffix.empty())) {
            decorated = start > 0 ? options_.prefix : "";
            decorated += symbol;
            if (at == word.size()) decorated += options_.suffix;
            symbol = decorated;
        }
        if (const int32_t id = vocab_.find(symbol); id >= 0) {
            flush();
            symbols.push_back(id);
            continue;
        }
        if (options_.byte_fallback && std::all_of(symbol.begin(), symbol.end(), [&](char c) {
                return byte_ids_[static_cast<uint8_t>(c)] >= 0;
            })) {
            for (const char c : symbol) symbols.push_back(byte_ids_[static_cast<uint8_t>(c)]);
            continue;
        }
        if (unk_id_ < 0) continue;
        if (!options_.fuse_unk) flush();
        pending_unk = true;
    }
    flush();
}

void Bpe::merge_short(std::vector<int32_t>& symbols) const {
    constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
    std::array<Merge, kShortWord> pairs;  // pairs[i] joins symbols i and i + 1
    size_t n = symbols.size();
    const auto look_up = [&](size_t i) {
        const Merge* m = find_merge(symbols[i], symbols[i + 1]);
        pairs[i] = m ? *m : Merge{kNoRank, -1};
    };
    for (size_t i = 0; i + 1 < n; ++i) look_up(i);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; ++i)
            if (pairs[i].rank < pairs[best].rank) best = i;
        if (pairs[best].rank == kNoRank) break;
        symbols[best] = pairs[best].result;
        std::copy(symbols.begin() + static_cast<ptrdiff_t>(best) + 2,
                  symbols.begin() + static_cast<ptrdiff_t>(n),
                  symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
        --n;
        std::copy(pairs.begin() + best + 1, pairs.begin() + n, pairs.begin() + best);
        if (best > 0) look_up(best - 1);
        if (best + 1 < n) look_up(best);
    }
    symbols.resize(n);
}

// A doubly linked list of symbols and a heap of candidate merges, so n symbols take O(n log n).
void Bpe::merge_long(std::vector<int32_t>& symbols) const {
    struct Node {
        int32_t id;
        uint32_t prev, next;
    };
    struct Candidate {
        uint32_t rank, at;
        int32_t left, right, result;
        bool operator<(const Candidate& o) const {  // std::priority_queue has the largest on top
            return rank != o.rank ? rank > o.rank : at > o.at;
        }
    };
    constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
    const auto n = static_cast<uint32_t>(symbols.size());
    std::vector<Node> nodes(n);
    for (uint32_t i = 0; i < n; ++i)
        nodes[i] = {symbols[i], i == 0 ? kEnd : i - 1, i + 1 == n ? kEnd : i + 1};

    std::vector<Candidate> initial;
    initial.reserve(n);
    const auto candidate = [&](uint32_t at, auto&& take) {
        const Node& left = nodes[at];
        if (left.next == kEnd) return;
        const int32_t right = nodes[left.next].id;
        if (const Merge* m = find_merge(left.id, right))
            take(Candidate{m->rank, at, left.id, right, m->result});
    };
    for (uint32_t i = 0; i + 1 < n; ++i)
        candidate(i, [&](const Candidate& c) { initial.push_back(c); });
    std::priority_queue<Candidate> heap({}, std::move(initial));
    const auto push = [&](const Candidate& c) { heap.push(c); };

    while (!heap.empty()) {
        const Candidate c = heap.top();
        heap.pop();
        Node& left = nodes[c.at];
        // Entries whose symbols have changed since are stale; id -1 marks a swallowed symbol.
        if (left.id != c.left || left.next == kEnd || nodes[left.next].id != c.right) continue;
        Node& right = nodes[left.next];
        left.id = c.result;
        right.id = -1;
        left.next = right.next;
        if (left.next != kEnd) nodes[left.next].prev = c.at;
        if (left.prev != kEnd) candidate(left.prev, push);
        candidate(c.at, push);
    }
    symbols.clear();
    for (uint32_t i = 0; i != kEnd; i = nodes[i].next) symbols.push_back(nodes[i].id);
}

}  // namespace exl3::text
