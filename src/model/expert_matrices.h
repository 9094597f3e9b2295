#pragma once
#include <vector>

#include "model/module.h"
#include "ops/moe.h"

namespace exl3 {

/// One matrix of every expert of a layer, run for all experts at once. Plain and EXL3 matrices, and
/// EXL3 of different bits, may stand side by side.
class ExpertMatrices {
public:
    ExpertMatrices() = default;
    /// @param specs  one for each expert, all of one size
    ExpertMatrices(Stream& s, const Checkpoint& c, const std::vector<LinearSpec>& specs);
    /// Entry i of y becomes row source[i] of x through the matrix of its group (expert).
    void forward(Stream& s, const RowGroups& groups, ConstView x, View y) const;
    int out() const { return slots_.front().spec.out; }
    int in() const { return slots_.front().spec.in; }
    std::vector<LinearSlot>& slots() { return slots_; }
    /// To be called when a slot got another Linear.
    void index(Device& device);

private:
    /// The experts whose matrices are stored alike.
    struct Format {
        LinearParts like;  // of one of them
        Tensor addresses;  // `matrices` of the grouped ops, zeros for experts of other formats
    };
    std::vector<LinearSlot> slots_;
    std::vector<Format> formats_;
};

}  // namespace exl3
