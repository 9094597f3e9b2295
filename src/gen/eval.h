#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "model/model.h"

namespace exl3 {

/// How a text is cut into rows and which positions count (docs/design/cli.md).
enum class EvalConvention : uint8_t {
    exl3,  ///< rows of ctx tokens without overlap, tail dropped; every position that has a next
           ///< token is scored
    gguf,  ///< chunks of ctx tokens, their first replaced by BOS; positions ctx/2 .. ctx-2 are
           ///< scored
};
std::string_view name_of(EvalConvention convention);

struct EvalOptions {
    int ctx = 2048;  ///< tokens of a row, at least 2 (gguf: 4)
    int rows = 100;  ///< at most so many rows
    int vocab = 0;   ///< ids of the tokenizer; logits beyond are padding and left out. 0: all
    EvalConvention convention = EvalConvention::exl3;
    KvBits kv_bits{};            ///< of the model's cache; a reference's is f16
    std::optional<int32_t> bos;  ///< for gguf; none: chunks are left as they are
    /// Called after each piece of work: positions done of all.
    std::function<void(int64_t done, int64_t total)> progress;
    const std::atomic<bool>* cancel = nullptr;  ///< set: Error{cancelled} at the next piece
};

/// Perplexity and how sure it is.
struct Perplexity {
    double ppl = 0;         ///< exp of the mean negative log-likelihood, nats
    double stderr_ppl = 0;  ///< ppl * sqrt(var(nll) / (n - 1)), n the scored tokens
    int64_t tokens = 0;     ///< predictions that were scored
    int rows = 0;           ///< rows that the text filled
    int64_t nonfinite = 0;  ///< predictions left out because a logit was NaN or infinite
};

/// Scores a tokenized text. Log-softmax is computed in f64 over the first `vocab` logits.
/// Throws Error{invalid_argument} for a text shorter than one row, Error{cancelled}, and
/// Error{out_of_memory} when the cache of a row does not fit.
Perplexity perplexity(const Model& model, Stream& s, std::span<const int32_t> text,
                      const EvalOptions& options);

/// How far a model's predictions are from a reference's, over every position of every row.
struct Divergence {
    double mean = 0;                      ///< KL(reference || model), nats per position
    double stderr_mean = 0;               ///< sqrt(var / (n - 1))
    double median = 0, p90 = 0, p99 = 0;  ///< quantiles, linear between neighbours
    double top1 = 0;     ///< share of positions whose most likely token is the same
    double ppl = 0;      ///< of the model over the same rows
    double ppl_ref = 0;  ///< of the reference
    int64_t tokens = 0;  ///< positions compared
    /// Mean KL of the reference against itself over the first row when it is fed in pieces of a
    /// third of the size: what the arithmetic of this device alone produces. A smaller mean says
    /// nothing.
    double noise_floor = 0;
    int64_t nonfinite = 0;  ///< positions left out because a logit of either was NaN or infinite
};

/// Compares two models that share a vocabulary. Both stand on the device of `s`; logits of a few
/// positions at a time are held, whatever the row length. The convention is exl3.
/// Throws as perplexity(), and Error{invalid_argument} when the vocabularies differ.
Divergence divergence(const Model& model, const Model& reference, Stream& s,
                      std::span<const int32_t> text, const EvalOptions& options);

}  // namespace exl3
