#define EXL3_ISA_FILE "cpu/gemm.cpp"
#include "cpu/isa.h"

#include <algorithm>

#include "cpu/gemm.h"
#include "ops/gemm.h"

EXL3_ISA_BEGIN

// Four lines at a time, a 4x4 block transposed in registers; SSE is part of every x86-64.
inline void gemm_pack_transposed(const float* x, int64_t line_step, int64_t depth, int width,
                                 float* out) {
    int64_t i = 0;
    for (; i + 4 <= depth; i += 4) {
        __m128 r0 = _mm_loadu_ps(x + i), r1 = _mm_loadu_ps(x + line_step + i);
        __m128 r2 = _mm_loadu_ps(x + 2 * line_step + i), r3 = _mm_loadu_ps(x + 3 * line_step + i);
        _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
        _mm_storeu_ps(out + i * width, r0);
        _mm_storeu_ps(out + (i + 1) * width, r1);
        _mm_storeu_ps(out + (i + 2) * width, r2);
        _mm_storeu_ps(out + (i + 3) * width, r3);
    }
    for (; i < depth; ++i)
        for (int n = 0; n < 4; ++n) out[i * width + n] = x[n * line_step + i];
}

void gemm_pack(const GemmOperand& x, int64_t line, int64_t depth, int width, float* out) {
    const int lines = static_cast<int>(lesser(x.lines - line, width));
    const float* from = x.data + line * x.line_step;
    if (x.line_step == 1) {
        for (int64_t i = 0; i < depth; ++i, from += x.depth_step, out += width) {
            int n = 0;
            for (; n + F32::width <= lines; n += F32::width) F32::load(from + n).store(out + n);
            for (; n < lines; ++n) out[n] = from[n];
            for (; n < width; ++n) out[n] = 0;
        }
        return;
    }
    int n = 0;
    for (; n + 4 <= lines; n += 4)
        gemm_pack_transposed(from + n * x.line_step, x.line_step, depth, width, out + n);
    for (; n < lines; ++n)
        for (int64_t i = 0; i < depth; ++i) out[i * width + n] = from[n * x.line_step + i];
    for (; n < width; ++n)
        for (int64_t i = 0; i < depth; ++i) out[i * width + n] = 0;
}

// A tile that ends outside c, or crosses the diagonal of a lower result.
template <int M, int V>
void gemm_store_part(const GemmPass& p, int64_t row, int64_t column, const float* tile) {
    for (int64_t m = 0; m < M && row + m < p.rows; ++m) {
        float* c = p.c + (row + m) * p.c_stride + column;
        int64_t columns = lesser(p.columns - column, V * F32::width);
        if (p.lower) columns = lesser(columns, row + m - column + 1);
        for (int64_t n = 0; n < columns; ++n)
            c[n] = p.alpha * tile[m * V * F32::width + n] + (p.beta == 0 ? 0 : p.beta * c[n]);
    }
}

template <int M, int V>
void gemm_tile(const GemmPass& p, const float* a, const float* b, int64_t row, int64_t column) {
    constexpr int kWidth = F32::width;
    F32 acc[M][V];
    clear_tile(acc);
    // Rows of a large c lie on pages of their own, where no hardware prefetch helps: asked for
    // here, they arrive during the products.
    float* c = p.c + row * p.c_stride + column;
    if (p.beta != 0)
        for (int m = 0; m < M && row + m < p.rows; ++m)
            for (int v = 0; v < V * kWidth; v += 16) __builtin_prefetch(c + m * p.c_stride + v, 1);
    outer_tile<M, V>(a, 1, M, b, V * kWidth, p.depth, acc);

    if (row + M > p.rows || column + V * kWidth > p.columns ||
        (p.lower && row < column + V * kWidth - 1)) {
        alignas(64) float tile[M * V * kWidth];
        store_tile(acc, tile, V * kWidth);
        return gemm_store_part<M, V>(p, row, column, tile);
    }
    const F32 alpha = F32::set(p.alpha), beta = F32::set(p.beta);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) {
            float* at = c + m * p.c_stride + v * kWidth;
            const F32 x = alpha * acc[m][v];
            (p.beta == 0 ? x : fma(beta, F32::load(at), x)).store(at);
        }
}

template <int M, int V>
void gemm_panels(const GemmPass& p, int64_t a_begin, int64_t a_end, int64_t b_begin,
                 int64_t b_end) {
    constexpr int64_t kColumns = V * F32::width;
    for (int64_t j = b_begin; j < b_end; ++j)
        for (int64_t i = a_begin; i < a_end; ++i) {
            if (p.lower && i * M + M - 1 < j * kColumns) continue;
            gemm_tile<M, V>(p, p.a + i * M * p.depth, p.b + j * kColumns * p.depth, i * M,
                            j * kColumns);
        }
}

template <int V, int M = kTileRows>
void gemm_rows(const GemmPass& p, int64_t a_begin, int64_t a_end, int64_t b_begin, int64_t b_end) {
    if (p.tile_rows == M) return gemm_panels<M, V>(p, a_begin, a_end, b_begin, b_end);
    if constexpr (M > 1) gemm_rows<V, M - 1>(p, a_begin, a_end, b_begin, b_end);
}

void gemm_block(const GemmPass& p, int64_t a_begin, int64_t a_end, int64_t b_begin, int64_t b_end) {
    if (p.tile_columns == F32::width)
        gemm_rows<1>(p, a_begin, a_end, b_begin, b_end);
    else
        gemm_rows<kTileVectors>(p, a_begin, a_end, b_begin, b_end);
}

GemmKernels gemm_kernels() {
    return {.pack = gemm_pack,
            .block = gemm_block,
            .max_rows = kTileRows,
            .narrow = F32::width,
            .wide = kTileVectors * F32::width};
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

void scale(const GemmArgs& a) {
    for (int64_t i = 0; i < a.c.shape[0]; ++i)
        for (int64_t j = 0; j < (a.lower ? std::min(i + 1, a.c.shape[1]) : a.c.shape[1]); ++j) {
            float& c = a.c.row<float>(i)[j];
            c = a.beta == 0 ? 0 : a.beta * c;
        }
}

// One pass over all tiles, in blocks whose panels of a stay in the second-level cache.
void run_pass(ThreadPool& pool, const GemmKernels& k, const GemmPass& p) {
    const int64_t a_panels = ceil_div(p.rows, p.tile_rows);
    const int64_t b_panels = ceil_div(p.columns, p.tile_columns);
    // Blocks group tiles only, so their size changes no result and may follow the thread count.
    int64_t a_block = std::min<int64_t>(a_panels, 16), b_block = std::min<int64_t>(b_panels, 16);
    const int64_t wanted = pool.threads() > 1 ? 4 * pool.threads() : 1;
    while (b_block > 1 && ceil_div(a_panels, a_block) * ceil_div(b_panels, b_block) < wanted)
        b_block = ceil_div(b_block, 2);
    while (a_block > 1 && ceil_div(a_panels, a_block) * ceil_div(b_panels, b_block) < wanted)
        a_block = ceil_div(a_block, 2);
    const int64_t a_blocks = ceil_div(a_panels, a_block), b_blocks = ceil_div(b_panels, b_block);
    pool.parallel_for(a_blocks * b_blocks, 1, [&](int64_t begin, int64_t) {
        const int64_t i = begin / b_blocks * a_block, j = begin % b_blocks * b_block;
        k.block(p, i, std::min(i + a_block, a_panels), j, std::min(j + b_block, b_panels));
    });
}

}  // namespace

void gemm(Stream& s, const GemmArgs& g) {
    const int64_t m = g.c.shape[0], n = g.c.shape[1], depth = g.a.shape[g.transpose_a ? 0 : 1];
    if (m == 0 || n == 0) return;
    if (depth == 0) return scale(g);
    const GemmKernels k = EXL3_ISA_PICK(s, gemm_kernels)();
    ThreadPool& pool = pool_of(s);

    // Tiles of equal height: 16 rows are two tiles of 8, not 12 and a third of one.
    const int64_t tile_rows = ceil_div(m, ceil_div(m, k.max_rows));
    const int64_t tile_columns = n <= k.narrow ? k.narrow : k.wide;
    const int64_t a_panels = ceil_div(m, tile_rows), b_panels = ceil_div(n, tile_columns);
    const auto scope = s.workspace().scope();
    const int64_t most = std::min(depth, kGemmDepth);
    float* a = s.workspace().take(DType::f32, {a_panels * tile_rows * most}).as<float>();
    float* b = s.workspace().take(DType::f32, {b_panels * tile_columns * most}).as<float>();

    GemmOperand from_a{.data = g.a.as<float>(),
                       .lines = m,
                       .line_step = g.transpose_a ? 1 : g.a.row_stride,
                       .depth_step = g.transpose_a ? g.a.row_stride : 1};
    GemmOperand from_b{.data = g.b.as<float>(),
                       .lines = n,
                       .line_step = g.transpose_b ? g.b.row_stride : 1,
                       .depth_step = g.transpose_b ? 1 : g.b.row_stride};
    for (int64_t begin = 0; begin < depth; begin += kGemmDepth) {
        const GemmPass pass{.a = a,
                            .b = b,
                            .c = g.c.as<float>(),
                            .c_stride = g.c.row_stride,
                            .rows = m,
                            .columns = n,
                            .depth = std::min(kGemmDepth, depth - begin),
                            .tile_rows = static_cast<int>(tile_rows),
                            .tile_columns = static_cast<int>(tile_columns),
                            .alpha = g.alpha,
                            .beta = begin == 0 ? g.beta : 1.0f,
                            .lower = g.lower};
        pool.parallel_for(a_panels + b_panels, 4, [&](int64_t i, int64_t end) {
            for (; i < end; ++i) {
                const int64_t j = i - a_panels;
                if (j < 0)
                    k.pack(from_a, i * tile_rows, pass.depth, pass.tile_rows,
                           a + i * tile_rows * pass.depth);
                else
                    k.pack(from_b, j * tile_columns, pass.depth, pass.tile_columns,
                           b + j * tile_columns * pass.depth);
            }
        });
        run_pass(pool, k, pass);
        from_a.data += pass.depth * from_a.depth_step;
        from_b.data += pass.depth * from_b.depth_step;
    }
}

}  // namespace exl3::cpu
#endif
