#pragma once
#include <cstdint>
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
    /// From a given mean, taken as exact, for tests and tools. @param mean  (k, k) f32, symmetric
    static Hessian from_mean(ConstView mean);

    int64_t k() const { return k_; }
    int64_t count() const { return count_; }      ///< rows summed
    int64_t dropped() const { return dropped_; }  ///< rows left out
    bool exact() const { return exact_; }         ///< made by from_mean
    /// Gives the sum away: Σ x xᵀ in the lower triangle (the upper one is undefined), (k, k).
    std::vector<float> take_sum() && { return std::move(sum_); }

private:
    int64_t k_ = 0, count_ = 0, dropped_ = 0;
    bool exact_ = false;
    std::vector<float> sum_;
};

/// The mean of a Hessian, ready to be rotated into the basis of a matrix. Shared by every matrix
/// that reads the same input.
struct FinalHessian {
    int64_t k = 0;
    bool usable = false;      ///< false: no data, or degenerate; matrices are rounded without it
    std::vector<float> mean;  ///< (k, k) f32, symmetric
    double diagonal = 0;      ///< mean of its diagonal
    double uncertainty =
        0;  ///< damping that its number of rows asks for, as a share of the diagonal
};

/// Divides by the count. Not usable if there were no rows, or their mean square is below 1e-20 or
/// not finite.
FinalHessian finalize(Hessian h);

/// diag(scale) H diag(scale) in the Hadamard basis, plus `damping` times the mean of its diagonal
/// on the diagonal: what rounding errors of a matrix whose rows were divided by `scale` are weighed
/// with. (k, k) f32, symmetric.
std::vector<float> rotated(Stream& s, const FinalHessian& h, const std::vector<float>& scale,
                           double damping);

/// The block LDL factor of a symmetric h (k, k): h = (I + L) D (I + L)ᵀ with 16-column blocks, D
/// block-diagonal, L strictly block-lower-triangular. The blocks of h below the diagonal ones
/// become those of L, the lower triangles of the diagonal blocks the Cholesky factors of D's; what
/// lies above is undefined. A matrix that is not positive definite gets more damping, 0.05 of its
/// mean diagonal at a time up to ten times, then Error{invalid_argument}.
/// @return the trace of D
double block_ldl(Stream& s, std::vector<float>& h, int64_t k);

/// Cholesky factor of a symmetric h (k, k) f32 in place of its lower triangle; the part above the
/// diagonal is neither read nor written. False if h is not positive definite.
bool cholesky(Stream& s, float* h, int64_t k);

/// Solves h x = b for a symmetric positive definite h (k, k), which is overwritten, and b (k),
/// which becomes x. False if h is not positive definite.
bool solve(Stream& s, std::vector<float>& h, std::vector<double>& b);

}  // namespace exl3
