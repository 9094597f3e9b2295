#pragma once
#include <functional>
#include <vector>

#include "io/checkpoint.h"
#include "model/spec.h"
#include "quant/hessian.h"
#include "quant/work_folder.h"

namespace exl3 {

/// How the model's output hangs on one matrix, in the second-order approximation of the KL
/// divergence: an error E (k, n) of the matrix costs 1/2 tr(O Eᵀ H E) nats per token, H the second
/// moment of its input and O that of the gradient of log p (a token drawn from p) by its output.
struct LinearFisher {
    Key key;
    std::vector<float> output;           ///< O, (n, n), symmetric; empty for the head
    std::vector<float> output_diagonal;  ///< (n)
    /// Nats per token that a mean squared rounding error of one, relative to the rms of every
    /// column, costs with feedback.
    double sensitivity = 0;
};

struct FisherOptions {
    std::vector<std::vector<int32_t>> rows;  ///< sequences of equal length
    uint64_t seed = 0;                       ///< of the tokens drawn
    int64_t max_output = 4096;  ///< wider matrices get no `output`: it grows with the square
    std::function<void(const std::string& what)> progress;
};

/// Called once per part, the head (layer = number of blocks) first, then the blocks from the last
/// to the first.
using FisherVisitor = std::function<void(int layer, std::vector<LinearFisher>)>;

/// One forward and one backward pass of the unquantized model. Memory: one block in f32 with its
/// activations, and the hidden states of all rows at every layer.
/// The model must be one that can be trained (train::why_not).
void measure_fisher(Stream& s, const Checkpoint& c, const ModelSpec& spec,
                    const FisherOptions& options, const FisherVisitor& visit);

/// O as a metric of a matrix of n outputs padded to a multiple of 128.
/// @param tokens  from how many it was measured
FinalHessian output_metric(LinearFisher f, int64_t tokens);

/// Keeps what was measured in a work folder, and reads it again.
void save_fisher(const WorkFolder& work, const std::string& part,
                 const std::vector<LinearFisher>& linears);
std::vector<LinearFisher> load_fisher(const WorkFolder& work, const std::string& part);

}  // namespace exl3
