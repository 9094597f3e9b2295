#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/paged_cache.h"
#include "gen/decode_step.h"
#include "model/model.h"

namespace exl3 {

/// Times forward passes of a model, as a server would run them: several sequences of one length,
/// each adding the same number of tokens. The cache holds random keys and values, so no prompt has
/// to be read first. Uses its stream alone.
class SpeedProbe {
public:
    /// Room for `sequences` of up to `max_tokens` each. Throws as PagedCache.
    SpeedProbe(const Model& model, Stream& s, int sequences, int64_t max_tokens, KvBits bits = {});

    /// Seconds of one step: each of the first `sequences` sequences has `past` tokens and adds
    /// `added`; the logits of each one's last token come to the host.
    double pass(int sequences, int64_t past, int64_t added);
    /// Seconds of one decoding step, over `steps` that follow each other as DecodeStep runs them:
    /// each of the first `sequences` sequences has `past` tokens, and the most probable token is
    /// chosen on the device.
    double decode(int sequences, int64_t past, int steps);
    /// Bytes that such a step moves between memory and the attention and recurrent layers: keys and
    /// values are read, states read and written.
    uint64_t cache_bytes(int sequences, int64_t past, int64_t added) const;

private:
    void fill_cache(const KvLayout& layout);
    const Model& model_;
    Stream& stream_;
    int pages_each_;
    uint64_t bytes_per_token_;
    PagedCache cache_;
    StateCache states_;
    std::vector<int32_t> pages_;  // (sequences, pages_each)
    std::vector<int32_t> slots_;  // one per sequence
    std::vector<float> logits_;
    std::unique_ptr<DecodeStep> step_;  // of step_sequences_
    int step_sequences_ = 0;
};

/// Bytes of the matrices that a step reads (embedding rows are a few and left out), and their
/// weights. Routed experts count as often as some token of the batch is expected to choose them,
/// all choices being equally likely.
struct WeightTraffic {
    uint64_t bytes = 0;
    double weights = 0;
};
WeightTraffic weight_traffic(Model& model, int batch);

}  // namespace exl3
