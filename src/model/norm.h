#pragma once
#include "model/linear.h"
#include "ops/exl3.h"
#include "ops/rope_append.h"

namespace exl3 {

/// The normalisation that a NormSpec names, with its weight.
class Norm {
public:
    /// Over rows of `dim` values.
    Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, int dim);
    /// Over the heads of queries or keys, `heads` of `head_dim` values each.
    Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, int heads, int head_dim);
    /// Normalises x (rows, values) into y, which may alias it. Rows are cut into pieces of the
    /// size the norm works on.
    void forward(Stream& s, ConstView x, View y) const;
    /// Makes this norm the first stage of a fused call. False: it is no RMS norm over whole rows.
    bool lead(Exl3FusedArgs& a) const;
    /// This norm over heads as a stage of rope_append; nothing if it is no RMS norm with one weight
    /// for heads of that size.
    std::optional<HeadNorm> over_heads(int head_dim) const;

private:
    Norm(Stream& s, const Checkpoint& c, const NormSpec& spec, std::vector<int64_t> weight_shape);
    Tensor weight_, bias_;
    NormSpec spec_;
    int64_t dim_ = 0;
};

}  // namespace exl3
