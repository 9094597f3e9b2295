#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace exl3 {

/// "BF16" is DType::bf16; nullopt for a name that the safetensors format does not have.
std::optional<DType> dtype_from_safetensors(std::string_view name);
/// The name that a safetensors header gives to `dtype`.
std::string_view safetensors_name(DType dtype);
/// "F64, F32, ...": what an error message offers.
std::string all_safetensors_dtypes();

}  // namespace exl3
