#pragma once
#include <string_view>

#include "io/checkpoint.h"

namespace exl3 {

/// Throws Error{invalid_file} naming file, tensor and the byte of the first NaN or infinity of an
/// f16, bf16 or f32 tensor; also for other dtypes and missing tensors. Reads every byte.
void require_finite(const Checkpoint& checkpoint, std::string_view name);

}  // namespace exl3
