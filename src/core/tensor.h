#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "core/buffer.h"

namespace exl3 {

/// Every element type that a checkpoint may hold. Activations are f32 unless an op says otherwise.
enum class DType : uint8_t {
    f32,
    f16,
    bf16,
    f64,
    f8_e4m3,
    f8_e5m2,
    f8_e8m0,
    i64,
    i32,
    i16,
    i8,
    u64,
    u32,
    u16,
    u8,
    boolean
};

constexpr size_t size_of(DType t) {
    switch (t) {
        case DType::f64:
        case DType::i64:
        case DType::u64: return 8;
        case DType::f32:
        case DType::i32:
        case DType::u32: return 4;
        case DType::f16:
        case DType::bf16:
        case DType::i16:
        case DType::u16: return 2;
        case DType::f8_e4m3:
        case DType::f8_e5m2:
        case DType::f8_e8m0:
        case DType::i8:
        case DType::u8:
        case DType::boolean: return 1;
    }
    return 0;
}

/// "f32", "bf16", ... as error messages and inspect print them.
std::string_view name_of(DType t);

/// Up to four dimensions, slowest first.
struct Shape {
    std::array<int64_t, 4> dim{};
    int rank = 0;
    constexpr Shape() = default;
    constexpr Shape(std::initializer_list<int64_t> d) {
        EXL3_CHECK(d.size() <= 4);
        for (const int64_t x : d) dim[rank++] = x;
    }
    /// Negative indices count from the end: shape[-1] is the contiguous dimension.
    constexpr int64_t operator[](int i) const { return dim[i < 0 ? rank + i : i]; }
    constexpr bool operator==(const Shape&) const = default;
    constexpr int64_t numel() const {
        int64_t n = 1;
        for (int i = 0; i < rank; ++i) n *= dim[i];
        return n;
    }
};
std::string to_string(const Shape& shape);  ///< "(3, 128)"

/// What ops and kernels take: trivially copyable, never owns, innermost dimension contiguous.
/// Dimensions other than the last are laid out densely over rows of `row_stride` elements.
struct ConstView {
    const void* data = nullptr;
    DType dtype = DType::f32;
    Shape shape{};
    int64_t row_stride = 0;  ///< elements from one row of the innermost dimension to the next

    template <typename T>
    const T* as() const {
        return static_cast<const T*>(data);
    }
    explicit operator bool() const { return data != nullptr; }
    int64_t rows() const { return shape.rank ? shape.numel() / shape[-1] : 1; }
    template <typename T>
    const T* row(int64_t r) const {
        return as<T>() + r * row_stride;
    }
};

struct View {
    void* data = nullptr;
    DType dtype = DType::f32;
    Shape shape{};
    int64_t row_stride = 0;

    template <typename T>
    T* as() const {
        return static_cast<T*>(data);
    }
    explicit operator bool() const { return data != nullptr; }
    int64_t rows() const { return shape.rank ? shape.numel() / shape[-1] : 1; }
    template <typename T>
    T* row(int64_t r) const {
        return as<T>() + r * row_stride;
    }
    // Implicit on purpose: what can be written can be read.
    operator ConstView() const { return {data, dtype, shape, row_stride}; }  // NOLINT
};
static_assert(std::is_trivially_copyable_v<View>);

inline ConstView dense(const void* data, DType dtype, Shape shape) {
    return {data, dtype, shape, shape.rank ? shape[-1] : 1};
}
inline View dense(void* data, DType dtype, Shape shape) {
    return {data, dtype, shape, shape.rank ? shape[-1] : 1};
}

/// Rows [begin, begin + count) of a (rows, dim) view.
inline View slice_rows(View v, int64_t begin, int64_t count) {
    v.data = static_cast<std::byte*>(v.data) + begin * v.row_stride * size_of(v.dtype);
    v.shape = {count, v.shape[-1]};
    return v;
}
inline ConstView slice_rows(ConstView v, int64_t begin, int64_t count) {
    v.data = static_cast<const std::byte*>(v.data) + begin * v.row_stride * size_of(v.dtype);
    v.shape = {count, v.shape[-1]};
    return v;
}
/// Columns [begin, begin + count) of a (rows, dim) view.
inline View slice_columns(View v, int64_t begin, int64_t count) {
    EXL3_CHECK(v.shape.rank == 2 && begin >= 0 && begin + count <= v.shape[1]);
    v.data = static_cast<std::byte*>(v.data) + begin * static_cast<int64_t>(size_of(v.dtype));
    v.shape = {v.shape[0], count};
    return v;
}

/// The same dense elements under another shape.
inline View reshape(View v, Shape shape) {
    EXL3_CHECK(v.row_stride == v.shape[-1] && shape.numel() == v.shape.numel());
    return dense(v.data, v.dtype, shape);
}
inline ConstView reshape(ConstView v, Shape shape) {
    EXL3_CHECK(v.row_stride == v.shape[-1] && shape.numel() == v.shape.numel());
    return dense(v.data, v.dtype, shape);
}

/// A view plus shared ownership of its bytes: weights, caches. An empty Tensor has no data.
struct Tensor {
    std::shared_ptr<const Buffer> bytes;
    View view;
    explicit operator bool() const { return view.data != nullptr; }
};

}  // namespace exl3
