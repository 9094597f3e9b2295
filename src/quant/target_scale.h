#pragma once
#include <vector>

#include "core/device.h"
#include "quant/ldlq.h"

namespace exl3 {

/// Of targets of variance one, normally distributed: the scale at which their rounding error is
/// least, and that error, mean squared, at variance one.
double gaussian_scale(const TrellisKind& kind);
double gaussian_error(int bits);

/// Targets beyond this are out of the codebook's reach.
float reach(Codebook codebook);

/// A better scale for targets that are not normal, or so finely coded that a few beyond the
/// codebook's reach matter: near `scale`, by rounding a sample of tiles at several scales.
/// @param target  (k, n) f32 of variance about one
double refine_scale(Stream& s, ConstView target, double scale, const TrellisKind& kind);

/// The published search: a coarse and a fine grid from 0.1 to 1.9.
/// @param target  (k, n) f32 of root mean square near kCodebookScale
double grid_scale(Stream& s, ConstView target, const TrellisKind& kind);

}  // namespace exl3
