#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "cache/paged_cache.h"
#include "gen/decode_step.h"
#include "model/model.h"

namespace exl3 {

struct SessionOptions {
    int64_t max_tokens = 0;   ///< capacity of the cache, tokens; also what longrope chooses by
    int64_t rope_length = 0;  ///< length that picks length-dependent rope tables; 0: max_tokens
    KvBits kv_bits{};         ///< of the cache
    int chunk = 512;          ///< positions that go through the model at a time
};

/// One sequence of tokens on one model: its cache and its place in it. For work on a single text
/// (run, logits, eval); many users at once are the generator's. Not thread-safe.
class Session {
public:
    /// Throws Error{out_of_memory} when the cache does not fit.
    Session(const Model& model, Stream& s, const SessionOptions& options);

    /// Appends tokens and writes the logits of the last one to `logits` (vocab floats, host).
    /// Throws Error{invalid_argument} past max_tokens or for an id outside the vocabulary.
    void feed(std::span<const int32_t> tokens, std::span<float> logits);
    /// Appends tokens and hands over the logits of every position, chunk by chunk, in order.
    /// @param each  (first position, logits (positions, vocab) f32 in host memory)
    void feed_all(std::span<const int32_t> tokens,
                  const std::function<void(int64_t position, ConstView logits)>& each);

    int64_t size() const { return size_; }  ///< tokens so far
    /// Forgets tokens from `size` on. A model with recurrent layers can only return to a point that
    /// was kept (the ends of the last few feeds of several tokens), so it may forget more.
    /// Returns the size reached, at most `size`.
    int64_t truncate(int64_t size);

private:
    enum class Rows { last, all };
    ConstView run(std::span<const int32_t> tokens, Rows rows);
    void require_ids(std::span<const int32_t> tokens) const;
    /// Runs one token by the recorded step; the logits stay until the next.
    ConstView run_one(int32_t token);
    void require_room(size_t tokens) const;
    void keep_point();

    const Model& model_;
    Stream& stream_;
    SessionOptions options_;
    PagedCache cache_;
    StateCache states_;
    std::vector<int32_t> pages_;
    int64_t size_ = 0;
    std::unique_ptr<DecodeStep> step_;  // made with the first single token
    /// The recurrent state after `size` tokens, in host memory.
    struct Point {
        int64_t size = 0;
        std::vector<std::byte> state;
    };
    std::deque<Point> points_;  // ascending; empty for a model without recurrent layers
};

}  // namespace exl3
