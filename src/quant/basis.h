#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/half.h"
#include "core/device.h"

namespace exl3 {

/// The scales between a matrix and what the trellis codes: weight = diag(su) H inner H diag(sv),
/// H the blockwise Hadamard transform.
struct Basis {
    std::vector<float> su;  ///< (k)
    std::vector<float> sv;  ///< (n)
};

/// Rounds both scales to f16, as they are stored.
void round_to_f16(Basis& basis);
/// Nearest f16; a value that is not zero stays so, and finite, or it would silence its channel.
f16 scale_to_f16(float v);

/// The targets of columns [begin, begin + cols): H diag(1/su) W diag(1/sv) H, (k, cols). Where a
/// scale is zero so are they before the transform.
void to_inner(Stream& s, ConstView weight, const Basis& basis, int64_t begin, View out);

/// H inner H in place.
void unrotate(Stream& s, View inner);

/// Root mean square of each column of W, and of each row of W diag(1/sv) H.
/// Throws Error{invalid_argument} naming the matrix and the first element that is not finite.
std::vector<double> column_rms(ConstView weight, const std::string& name);
std::vector<double> row_rms(Stream& s, ConstView weight, const std::vector<float>& sv);

/// Columns that are worked on at once: targets, errors and feedback of this many are in memory.
inline constexpr int64_t kSlab = 8192;

}  // namespace exl3
