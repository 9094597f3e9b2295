#pragma once
#include "base/half.h"
#include "core/tensor.h"

namespace exl3 {

/// Element i of dense f32, f16 or bf16 data as f32. For oracles and set-up code.
inline float load_f32(const void* data, DType dtype, int64_t i) {
    switch (dtype) {
        case DType::f32: return static_cast<const float*>(data)[i];
        case DType::f16: return to_float(static_cast<const f16*>(data)[i]);
        case DType::bf16: return to_float(static_cast<const bf16*>(data)[i]);
        default: EXL3_CHECK(false, "not a float type");
    }
}
inline float load_f32(const ConstView& v, int64_t row, int64_t i) {
    return load_f32(v.data, v.dtype, row * v.row_stride + i);
}

}  // namespace exl3
