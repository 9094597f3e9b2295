#include "io/dtype_names.h"

#include <array>
#include <utility>

namespace exl3 {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 16> kNames{{{"F64", DType::f64},
                                                                     {"F32", DType::f32},
                                                                     {"F16", DType::f16},
                                                                     {"BF16", DType::bf16},
                                                                     {"F8_E4M3", DType::f8_e4m3},
                                                                     {"F8_E5M2", DType::f8_e5m2},
                                                                     {"F8_E8M0", DType::f8_e8m0},
                                                                     {"I64", DType::i64},
                                                                     {"I32", DType::i32},
                                                                     {"I16", DType::i16},
                                                                     {"I8", DType::i8},
                                                                     {"U64", DType::u64},
                                                                     {"U32", DType::u32},
                                                                     {"U16", DType::u16},
                                                                     {"U8", DType::u8},
                                                                     {"BOOL", DType::boolean}}};

}  // namespace

std::optional<DType> dtype_from_safetensors(std::string_view name) {
    for (const auto& [known, dtype] : kNames)
        if (known == name) return dtype;
    return std::nullopt;
}

std::string_view safetensors_name(DType dtype) {
    for (const auto& [name, known] : kNames)
        if (known == dtype) return name;
    EXL3_CHECK(false, "a dtype without a safetensors name");
}

std::string all_safetensors_dtypes() {
    std::string s;
    for (const auto& [name, dtype] : kNames) s.append(s.empty() ? "" : ", ").append(name);
    return s;
}

}  // namespace exl3
