#pragma once
#include <string_view>
#include <vector>

#include "io/checkpoint.h"

namespace exl3 {

/// Any float tensor of a checkpoint (f64, f32, f16, bf16, fp8 with its weight_scale or
/// weight_scale_inv companion applied) as dense f32, converted into `out` (numel floats).
/// Throws Error{invalid_file} naming file and tensor for an integer dtype or a companion of the
/// wrong shape.
void read_f32(const Checkpoint& checkpoint, std::string_view name, float* out);
std::vector<float> read_f32(const Checkpoint& checkpoint, std::string_view name);

/// Converts n elements of a float dtype.
void convert_to_f32(const void* from, DType dtype, int64_t n, float* to);

}  // namespace exl3
