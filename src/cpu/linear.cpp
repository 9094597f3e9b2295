#define EXL3_ISA_FILE "cpu/linear.cpp"
#include "cpu/isa.h"

#include <algorithm>

#include "cpu/linear.h"
#include "ops/linear.h"

EXL3_ISA_BEGIN

// Rows of x in one register tile, and outputs beside them. Every (row, output) pair has an
// accumulator of its own that runs over the input in one order and is reduced by sum4, so a result
// depends neither on these numbers nor on the rows around it.
inline constexpr int kLinearRows = F32::width == 16 ? 6 : 3;
inline constexpr int linear_outputs(int rows) {
    return rows == 1 || (F32::width == 16 && rows <= 3) ? 8 : 4;
}

template <int M, int N, typename W>
void linear_tile(const LinearBlock& t, const float* x, const W* w, int64_t stride, float* partial,
                 float* y, const float* bias) {
    F32 acc[M][N];
    if (t.first)
        clear_tile(acc);
    else
        load_tile(acc, partial, N * F32::width);
    dot_tile<M, N>(x, w, stride, t.depth, acc);
    if (!t.last) return store_tile(acc, partial, N * F32::width);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
        float total[N < 4 ? 4 : N];
        if constexpr (N >= 4) {
#pragma GCC unroll 8
            for (int n = 0; n < N; n += 4)
                sum4(acc[m][n], acc[m][n + 1], acc[m][n + 2], acc[m][n + 3], total + n);
        } else {
            sum4(acc[m][0], acc[m][0], acc[m][0], acc[m][0], total);
        }
        for (int n = 0; n < N; ++n) y[m * t.y_stride + n] = total[n] + bias[n];
    }
}

template <int M, typename W>
void linear_rows(const LinearBlock& t, const float* x, const W* w, int64_t stride, float* partial,
                 float* y, const float* bias) {
    constexpr int N = linear_outputs(M);
    int n = 0;
    for (; n + N <= t.outputs; n += N) {
        if (n + 2 * N <= t.outputs)
            for (int j = N; j < 2 * N; ++j)
                for (int64_t i = 0; i < t.ahead; i += 64 / sizeof(W))
                    __builtin_prefetch(w + (n + j) * stride + i);
        linear_tile<M, N>(t, x, w + n * stride, stride, partial + n * M * F32::width, y + n,
                          bias + n);
    }
    for (; n < t.outputs; ++n)
        linear_tile<M, 1>(t, x, w + n * stride, stride, partial + n * M * F32::width, y + n,
                          bias + n);
}

template <typename W>
void linear_block(const LinearBlock& t, int rows, const float* x, const W* w, int64_t stride,
                  float* partial, float* y, const float* bias) {
    switch (rows) {
        case 1: return linear_rows<1>(t, x, w, stride, partial, y, bias);
        case 2: return linear_rows<2>(t, x, w, stride, partial, y, bias);
        case 3: return linear_rows<3>(t, x, w, stride, partial, y, bias);
    }
    if constexpr (kLinearRows > 3) switch (rows) {
            case 4: return linear_rows<4>(t, x, w, stride, partial, y, bias);
            case 5: return linear_rows<5>(t, x, w, stride, partial, y, bias);
            case 6: return linear_rows<6>(t, x, w, stride, partial, y, bias);
        }
}

// Outputs [begin, end) of every row, for one type of weight.
template <typename W>
void linear_piece(const LinearArgs& a, const LinearPlan& p, int64_t begin, int64_t end) {
    alignas(64) float partial[kLinearRows * kLinearOutputs * F32::width];
    float bias[kLinearOutputs];
    const int64_t in = a.x.shape[1];
    for (int64_t j = begin; j < end; j += kLinearOutputs) {
        LinearBlock t{.outputs = static_cast<int>(lesser(kLinearOutputs, end - j)),
                      .y_stride = a.y.row_stride};
        for (int n = 0; n < t.outputs; ++n) bias[n] = a.bias ? load_f32(a.bias, 0, j + n) : 0;
        for (int64_t b = 0; b < p.blocks; ++b) {
            const int64_t row = p.first_row(b), rows = p.first_row(b + 1) - row;
            const float* x = p.x + row * p.padded_in;
            for (int64_t i = 0; i < in; i += p.depth, x += rows * p.depth) {
                t.depth = lesser(p.depth, in - i);
                t.first = i == 0;
                t.ahead = b == 0 ? lesser(p.ahead, t.depth) : 0;  // later blocks find them cached
                t.last = i + p.depth >= in;
                linear_block(t, static_cast<int>(rows), x, a.weight.row<W>(j) + i,
                             a.weight.row_stride, partial, a.y.row<float>(row) + j, bias);
            }
        }
    }
}

void linear_any(const LinearArgs& a, const LinearPlan& p, int64_t begin, int64_t end) {
    switch (a.weight.dtype) {
        case DType::f16: return linear_piece<f16>(a, p, begin, end);
        case DType::bf16: return linear_piece<bf16>(a, p, begin, end);
        default: return linear_piece<float>(a, p, begin, end);
    }
}

// Interleaves the rows of a block by vector, as dot_tile reads them.
void linear_pack(const LinearArgs& a, const LinearPlan& p, int64_t block) {
    const int64_t row = p.first_row(block), rows = p.first_row(block + 1) - row;
    float* out = p.x + row * p.padded_in;
    for (int64_t i = 0; i < p.padded_in; i += F32::width)
        for (int64_t r = 0; r < rows; ++r, out += F32::width)
            F32::load(a.x.row<float>(p.source ? p.source[row + r] : row + r) + i,
                      lesser(F32::width, a.x.shape[1] - i))
                .store(out);
}

LinearKernels linear_kernels() {
    return {.pack = linear_pack, .outputs = linear_any, .rows = kLinearRows, .width = F32::width};
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

LinearKernels linear_kernels_of(const Stream& s) {
    return EXL3_ISA_PICK(s, linear_kernels)();
}

LinearPlan::LinearPlan(const LinearArgs& a, int width, int block_rows)
    : rows(a.y.shape[0]), blocks((rows + block_rows - 1) / block_rows) {
    const int64_t in = a.x.shape[1];
    padded_in = (in + width - 1) / width * width;
    // A few rows stream the weights front to back, as fast as memory gives them. More rows keep
    // their slice of x in the first-level cache and ask for the weights of the next tile early.
    const bool stream = rows <= 3;
    depth = stream ? std::max<int64_t>(in, 1) : kLinearDepth;
    ahead = stream ? 0 : kLinearDepth;
}

void linear(Stream& s, const LinearArgs& a) {
    const int64_t rows = a.x.shape[0], out = a.y.shape[1];
    if (rows == 0 || out == 0) return;
    const LinearKernels k = linear_kernels_of(s);
    const auto scope = s.workspace().scope();
    LinearPlan p(a, k.width, k.rows);
    p.x = s.workspace().take(DType::f32, {rows, p.padded_in}).as<float>();

    ThreadPool& pool = pool_of(s);
    pool.parallel_for(p.blocks, 8, [&](int64_t b, int64_t e) {
        for (; b < e; ++b) k.pack(a, p, b);
    });
    pool.parallel_for(out, kLinearOutputs, [&](int64_t b, int64_t e) { k.outputs(a, p, b, e); });
}

}  // namespace exl3::cpu
#endif
