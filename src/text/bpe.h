#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>

#include "text/token_model.h"
#include "text/word_cache.h"

namespace exl3::text {

struct BpeOptions {
    bool raw_bytes = false;      ///< pieces are bytes, the vocabulary is in byte stand-ins
    bool ignore_merges = false;  ///< a piece that is a token is that token, whatever the merges say
    bool byte_fallback = false;  ///< unknown characters become <0xHH> tokens where all exist
    bool fuse_unk = false;       ///< neighbouring unknown characters become one unk
    std::string unk_token;       ///< empty: unknown characters vanish
    std::string prefix;          ///< continuing_subword_prefix
    std::string suffix;          ///< end_of_word_suffix
};

/// Byte pair encoding: the neighbouring pair with the lowest rank is merged first, the leftmost of
/// equals, until no pair is in the list.
class Bpe : public TokenModel {
public:
    Bpe(Vocab vocab, BpeOptions options);
    struct MergeText {
        std::string left, right;
    };
    /// Declares merges of ranks first_rank, first_rank + 1, ...; the last of repeated pairs wins.
    /// Returns the index of one whose parts or result (left + right without the prefix) are not in
    /// the vocabulary. Many at once, so that memory fetches overlap.
    std::optional<size_t> add_merges(std::span<const MergeText> merges, uint32_t first_rank);
    /// Declares one merge of known ids.
    void add_merge(int32_t left, int32_t right, uint32_t rank, int32_t result);
    void reserve_merges(size_t n);
    /// Must follow the last add_merge.
    void finish();

    void encode(std::string_view piece, std::vector<int32_t>& ids) const override;
    bool takes_raw_bytes() const override { return options_.raw_bytes; }
    const BpeOptions& options() const { return options_; }

private:
    struct Merge {
        uint32_t rank;
        int32_t result;
    };
    struct MergeSlot {
        uint64_t pair = kNoPair;
        Merge merge{};
    };
    static constexpr uint64_t kNoPair = ~uint64_t{0};
    static uint64_t pair_of(int32_t left, int32_t right) {
        return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
    }
    const Merge* find_merge(int32_t left, int32_t right) const;
    void insert_slot(std::vector<MergeSlot>& slots, uint64_t pair, Merge merge) const;
    void grow_merges(size_t slots);
    void find_safe_cuts();

    void encode_word(std::string_view word, std::vector<int32_t>& ids) const;
    void symbols_of(std::string_view word, std::vector<int32_t>& symbols) const;
    void text_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
    void merge_short(std::vector<int32_t>& symbols) const;
    void merge_long(std::vector<int32_t>& symbols) const;
    size_t next_cut(std::string_view piece, size_t from) const;

    BpeOptions options_;
    std::vector<MergeSlot> merges_;
    size_t merge_count_ = 0;
    int32_t unk_id_ = -1;
    StringTable raw_;                      // vocabulary as bytes, if raw_bytes
    std::array<int32_t, 256> byte_ids_{};  // raw_bytes: of the stand-in; byte_fallback: of <0xHH>
    bool can_cut_ = false;                 // no token has U+2581 behind other characters, except
    std::vector<char32_t> no_cut_after_;   // behind these (sorted)
    // Per token, whether its text encodes to itself alone: 0 not yet known, 1 yes, 2 no.
    std::unique_ptr<std::atomic<uint8_t>[]> whole_;
    mutable WordCache cache_;
};

}  // namespace exl3::text
