#pragma once
#include <cstdint>
#include <vector>

#include "ops/ops.h"

namespace exl3::train {

/// A dense f32 matrix in host memory, row-major.
struct Matrix {
    Matrix() = default;
    Matrix(int64_t r, int64_t c) : rows(r), cols(c), data(static_cast<size_t>(r * c)) {}
    int64_t rows = 0, cols = 0;
    std::vector<float> data;

    float* row(int64_t r) { return data.data() + r * cols; }
    const float* row(int64_t r) const { return data.data() + r * cols; }
    View view() { return dense(data.data(), DType::f32, {rows, cols}); }
    ConstView view() const { return dense(data.data(), DType::f32, {rows, cols}); }
    /// Rows [begin, begin + count) and columns [from, from + width).
    View part(int64_t begin, int64_t count, int64_t from, int64_t width) {
        return {row(begin) + from, DType::f32, {count, width}, cols};
    }
    ConstView part(int64_t begin, int64_t count, int64_t from, int64_t width) const {
        return {row(begin) + from, DType::f32, {count, width}, cols};
    }
};

/// y = x wᵀ: a linear layer with its weight as Hugging Face stores it, (out, in).
inline Matrix times_transposed(Stream& s, const Matrix& x, const Matrix& w) {
    Matrix y(x.rows, w.rows);
    ops::gemm(s, {.a = x.view(), .b = w.view(), .c = y.view(), .transpose_b = true});
    return y;
}

/// y = x w: its backward pass.
inline Matrix times(Stream& s, const Matrix& x, const Matrix& w) {
    Matrix y(x.rows, w.cols);
    ops::gemm(s, {.a = x.view(), .b = w.view(), .c = y.view()});
    return y;
}

inline void add(const Matrix& x, Matrix& y) {
    for (size_t i = 0; i < x.data.size(); ++i) y.data[i] += x.data[i];
}

}  // namespace exl3::train
