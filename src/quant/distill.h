#pragma once
#include <functional>
#include <vector>

#include "io/checkpoint.h"
#include "model/spec.h"
#include "quant/work_folder.h"

namespace exl3 {

struct DistillOptions {
    std::vector<std::vector<int32_t>> rows;  ///< sequences of equal length; a tenth is held out
    int steps = 48;
    int batch = 2;       ///< rows in a step
    double rate = 2e-3;  ///< of Adam, for scales relative to where they started
    std::function<void(const std::string& what)> progress;  ///< may throw to stop
};

struct DistillReport {
    double before = 0, after = 0;  ///< KL divergence of the held-out rows, nats per token
};

/// Moves the scales suh and svh of all matrices of a quantized model, through the whole model at
/// once, so that its distribution comes closer to that of the source: gradient descent on the KL
/// divergence (Adam). The trellis stays. Scales are kept only if they help on rows that were not
/// trained on.
/// The work folder keeps unfinished steps; the same call goes on after any interruption and ends
/// with the same numbers. Memory: three copies of the model in f32.
/// @param tensors  every matrix of the model, the head included; its scales are replaced
DistillReport distill(Stream& s, const Checkpoint& source, const ModelSpec& spec,
                      const WorkFolder& work, std::vector<QuantizedTensor>& tensors,
                      const DistillOptions& options);

}  // namespace exl3
