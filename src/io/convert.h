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

/// Entry `index` of the first dimension of a tensor of two or more, e.g. one expert of a stack;
/// otherwise as read_f32.
std::vector<float> read_f32_part(const Checkpoint& checkpoint, std::string_view name,
                                 int64_t index);

/// True if `name` stands in the checkpoint as MXFP4: 4-bit values in NAME_blocks, one scale for 32
/// of them in NAME_scales. Source: gpt-oss checkpoints; OCP Microscaling Formats (MX) 1.0.
bool is_mxfp4(const Checkpoint& checkpoint, std::string_view name);
/// Matrix `index` of an MXFP4 stack of shape (matrices, rows, columns), columns a multiple of 32.
/// Throws Error{invalid_file} if the tensors are of another shape or dtype.
std::vector<float> read_mxfp4(const Checkpoint& checkpoint, std::string_view name, int64_t index,
                              const std::vector<int64_t>& shape);

/// Converts n elements of a float dtype.
void convert_to_f32(const void* from, DType dtype, int64_t n, float* to);

}  // namespace exl3
