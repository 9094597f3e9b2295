#pragma once
#include <vector>

#include "ops/attention.h"
#include "ops/kv_group.h"

namespace exl3::ref {

/// Writes one head of one token. @param slot  row of the cache over all pages
inline void write_kv(const float* x, int64_t dim, const View& data, const View& scale, int64_t slot,
                     int64_t head) {
    const int64_t row = slot * data.shape[2] + head;
    if (!scale) {
        f16* out = data.as<f16>() + row * dim;
        for (int64_t i = 0; i < dim; ++i)
            out[i] = to_f16(x[i] > 65504.0f ? 65504.0f : x[i] < -65504.0f ? -65504.0f : x[i]);
        return;
    }
    const int bits = kv_bits_of(data, scale, dim);
    for (int64_t g = 0; g < dim / kKvGroup; ++g)
        kv_encode(x + g * kKvGroup, bits, data.as<uint32_t>() + (row * dim / kKvGroup + g) * bits,
                  scale.as<f16>() + row * dim / kKvGroup + g);
}

/// One head of one token as the model means it, quantized or not.
inline void read_kv(const View& data, const View& scale, int64_t slot, int64_t head,
                    std::vector<float>& out) {
    const auto dim = static_cast<int64_t>(out.size());
    const int64_t row = slot * data.shape[2] + head;
    if (!scale) {
        for (int64_t i = 0; i < dim; ++i)
            out[static_cast<size_t>(i)] = to_float(data.as<f16>()[row * dim + i]);
        return;
    }
    const int bits = kv_bits_of(data, scale, dim);
    f16 y[kKvGroup];
    for (int64_t g = 0; g < dim / kKvGroup; ++g) {
        kv_decode_rotated(data.as<uint32_t>() + (row * dim / kKvGroup + g) * bits,
                          scale.as<f16>()[row * dim / kKvGroup + g], bits, y);
        float* group = out.data() + g * kKvGroup;
        for (int i = 0; i < kKvGroup; ++i) group[i] = to_float(y[i]);
        kv_rotate(group);
    }
}

}  // namespace exl3::ref
