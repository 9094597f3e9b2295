#pragma once
#include <cstdint>
#include <functional>

#include "core/device.h"
#include "trellis/codebook.h"

namespace exl3 {

/// How fast a device converts, on random data of unit variance.
struct QuantizeSpeed {
    double encode = 0;        ///< weights per second through the trellis encoder alone
    double encode_mse = 0;    ///< their mean squared error, the values scaled by the best factor
    int64_t k = 0, n = 0;     ///< sizes of the matrix below
    double matrix = 0;        ///< weights per second of a whole matrix: rotation, scales, factors,
                              ///< encoding, error
    double proxy_err = 0;     ///< of that matrix
    double hessian_rows = 0;  ///< rows of width k per second into a Hessian
};

/// @param between  called between the parts; may throw to stop
QuantizeSpeed measure_quantize_speed(Stream& s, int bits, Codebook codebook,
                                     const std::function<void()>& between);

}  // namespace exl3
