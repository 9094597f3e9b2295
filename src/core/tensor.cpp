#include "core/tensor.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>

namespace exl3 {

std::string_view name_of(DType t) {
    switch (t) {
        case DType::f32: return "f32";
        case DType::f16: return "f16";
        case DType::bf16: return "bf16";
        case DType::f64: return "f64";
        case DType::f8_e4m3: return "f8_e4m3";
        case DType::f8_e5m2: return "f8_e5m2";
        case DType::f8_e8m0: return "f8_e8m0";
        case DType::i64: return "i64";
        case DType::i32: return "i32";
        case DType::i16: return "i16";
        case DType::i8: return "i8";
        case DType::u64: return "u64";
        case DType::u32: return "u32";
        case DType::u16: return "u16";
        case DType::u8: return "u8";
        case DType::boolean: return "bool";
    }
    return "?";
}

std::string to_string(const Shape& shape) {
    std::string s = "(";
    for (int i = 0; i < shape.rank; ++i) s += fmt::format("{}{}", i ? ", " : "", shape[i]);
    return s + ")";
}

Buffer allocate_host(size_t bytes) {
    // Large blocks are aligned to huge pages: packed weights are streamed once per token and the
    // TLB misses of 4 KiB pages are visible there.
    constexpr size_t kHuge = size_t{2} << 20;
    const size_t align = bytes >= kHuge ? kHuge : 64;
    const size_t rounded = (bytes + align - 1) / align * align;
    void* p = std::aligned_alloc(align, rounded ? rounded : align);
    if (!p)
        throw Error(Errc::out_of_memory, {}, fmt::format("host memory: {} bytes refused", bytes));
    if (bytes >= kHuge) madvise(p, rounded, MADV_HUGEPAGE);
    return {p, bytes, [](void* q, size_t, void*) { std::free(q); }, nullptr};
}

}  // namespace exl3
