#pragma once
#include <cstdint>
#include <vector>

#include "quant/basis.h"
#include "quant/hessian.h"
#include "quant/ldlq.h"

namespace exl3 {

/// A rounded matrix: states in trellis order and the scales it is read with.
struct Rounded {
    TrellisKind kind;
    int64_t k = 0, n = 0;
    std::vector<uint16_t> states;  ///< (k/16, n/16, 256)
    Basis basis;                   ///< as stored: values of f16
};

/// Squared errors in the metric of H, or plain ones without it.
struct WeighedError {
    double error = 0;  ///< tr(EᵀHE), E = rounded - weight
    double total = 0;  ///< tr(WᵀHW)
};

/// Measures the error of `r`; if `fit_sv` its output scales are first replaced by those that make
/// it least, column by column: sv_j = <W_j, G_j> / <G_j, G_j>, G the matrix without them.
WeighedError measure(Stream& s, ConstView weight, const FinalHessian* h, Rounded& r, bool fit_sv);

/// Replaces the input scales by those that make the error least given everything else: the solution
/// u of (H * PPᵀ) u = diag(H W Pᵀ), P the matrix without them (* by element). Zeros stay.
/// @param scratch  (k, k), overwritten
/// @param out  metric of the outputs, if there is one: columns then count by it
void fit_su(Stream& s, ConstView weight, const FinalHessian& h, const FinalHessian* out, Rounded& r,
            std::vector<float>& scratch);

/// The output scales in the metric of both sides, tr(O Eᵀ H E), solved for all columns at once.
void fit_sv(Stream& s, ConstView weight, const FinalHessian& h, const FinalHessian& out,
            Rounded& r);

}  // namespace exl3
