#pragma once
#include <vector>

#include "core/device.h"

namespace exl3 {

/// The second moment of what a group of matrices reads: H = sum of x xᵀ over tokens, (k, k).
class Hessian {
public:
    /// @param k  width, a multiple of 128; narrower inputs are zero-extended
    explicit Hessian(int64_t k);
    /// Adds rows of x (rows, at most k) f32. Rows with a non-finite value are left out and counted.
    void add(Stream& s, ConstView x);
    /// From a given mean, for tests and tools. @param mean  (k, k) f32, symmetric
    static Hessian from_mean(ConstView mean);

    int64_t k() const { return k_; }
    int64_t count() const { return count_; }      ///< rows summed
    int64_t dropped() const { return dropped_; }  ///< rows left out
    /// Σ x xᵀ in the lower triangle (the upper one is undefined), (k, k).
    const std::vector<float>& sum() const { return sum_; }

private:
    int64_t k_ = 0, count_ = 0, dropped_ = 0;
    std::vector<float> sum_;
};

struct FinalizeParams {
    float damping = 0.025f;  ///< added to the diagonal, as a share of its mean
};

/// The mean of a Hessian, damped, ready to be rotated into the basis of a matrix. Shared by every
/// matrix that reads the same input.
struct FinalHessian {
    int64_t k = 0;
    bool usable = false;      ///< false: no data, or degenerate; matrices are rounded without it
    std::vector<float> mean;  ///< (k, k) f32, symmetric, damped
};

/// Divides by the count and damps. Frees the sum.
FinalHessian finalize(Hessian h, const FinalizeParams& params = {});

/// diag(scale) H diag(scale) in the Hadamard basis: what rounding errors of a matrix whose rows
/// were divided by `scale` are weighed with. (k, k) f32.
std::vector<float> rotated(Stream& s, const FinalHessian& h, const std::vector<float>& scale);

/// The block LDL factor of H (k, k): H = (I + L) D (I + L)ᵀ with 16-column blocks, D
/// block-diagonal, L strictly block-lower-triangular. Overwrites h with L. A matrix that is not
/// positive definite gets more damping, up to ten times; then Error{invalid_argument}.
void block_ldl(Stream& s, std::vector<float>& h, int64_t k);

/// Cholesky factor in place (lower triangle). False if h is not positive definite; h is then
/// spoilt.
bool cholesky(Stream& s, float* h, int64_t k);

}  // namespace exl3
