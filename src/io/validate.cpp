#include "io/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace exl3 {
namespace {

/// Index of the first element of `data` (any alignment) whose exponent bits are all ones.
template <typename Word>
std::optional<int64_t> first_not_finite(const void* data, int64_t n, Word exponent) {
    const auto* bytes = static_cast<const char*>(data);
    constexpr int64_t kBlock = 512;
    Word block[kBlock];
    for (int64_t begin = 0; begin < n; begin += kBlock) {
        const int64_t count = std::min(kBlock, n - begin);
        std::memcpy(block, bytes + begin * sizeof(Word), count * sizeof(Word));
        // No early exit inside a block: compilers turn this loop into vector code.
        Word bad = 0;
        for (int64_t i = 0; i < count; ++i)
            bad |= static_cast<Word>((block[i] & exponent) == exponent);
        if (bad == 0) continue;
        for (int64_t i = 0; i < count; ++i)
            if ((block[i] & exponent) == exponent) return begin + i;
    }
    return std::nullopt;
}

}  // namespace

void require_finite(const Checkpoint& checkpoint, std::string_view name) {
    const ConstView v = checkpoint.view(name);
    Where where = checkpoint.where(name);
    const int64_t n = v.shape.numel();
    std::optional<int64_t> bad;
    uint32_t mantissa = 0;
    switch (v.dtype) {
        case DType::f16:
            bad = first_not_finite<uint16_t>(v.data, n, 0x7c00);
            mantissa = 0x03ff;
            break;
        case DType::bf16:
            bad = first_not_finite<uint16_t>(v.data, n, 0x7f80);
            mantissa = 0x007f;
            break;
        case DType::f32:
            bad = first_not_finite<uint32_t>(v.data, n, 0x7f800000);
            mantissa = 0x007fffff;
            break;
        default:
            throw Error(Errc::invalid_file, std::move(where),
                        fmt::format("found {}, needed f16, bf16 or f32", name_of(v.dtype)));
    }
    if (!bad) return;
    const uint64_t at = static_cast<uint64_t>(*bad) * size_of(v.dtype);
    uint32_t bits = 0;
    std::memcpy(&bits, v.as<char>() + at, size_of(v.dtype));
    *where.offset += at;
    throw Error(Errc::invalid_file, std::move(where),
                fmt::format("found {} as element {}, needed finite numbers",
                            bits & mantissa ? "NaN" : "an infinity", *bad));
}

}  // namespace exl3
