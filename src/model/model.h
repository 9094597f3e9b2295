#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "model/block.h"
#include "model/embedding.h"
#include "model/head.h"

namespace exl3 {

/// What each layer of a model keeps in the cache.
KvLayout kv_layout(const ModelSpec& spec);
/// What each layer of a model keeps per sequence in a StateCache.
StateLayout state_layout(const ModelSpec& spec);

/// True if blocks read Batch::embedded.
bool needs_embedded(const ModelSpec& spec);

/// Called as parts become ready: done of total.
using LoadProgress = std::function<void(int done, int total)>;

/// A loaded model. Constant, so generators can share it; each brings its own cache and stream.
class Model {
public:
    /// Reads every part from the checkpoint, compared with the spec on the way.
    /// Throws Error naming file and tensor. The checkpoint is not needed afterwards.
    Model(Stream& s, const Checkpoint& c, ModelSpec spec, const LoadProgress& progress = {});

    const ModelSpec& spec() const { return spec_; }
    /// Runs a batch through embedding and blocks. @param x  (tokens, hidden) f32, overwritten
    void hidden(Stream& s, const Batch& b, View x) const;
    /// The logits of rows of hidden states. @param logits  (rows, vocab) f32
    void logits(Stream& s, ConstView x, View logits) const { head_.forward(s, x, logits); }
    /// Every matrix, in quantization order.
    void each_linear(const LinearVisitor& visit);

private:
    ModelSpec spec_;
    Embedding embedding_;
    std::vector<std::unique_ptr<Module>> blocks_;
    Head head_;
};

}  // namespace exl3
