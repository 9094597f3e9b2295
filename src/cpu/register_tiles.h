// The two register tiles behind the dense ops. Every loop over a tile is unrolled: a loop that is
// not would send the accumulators through memory. No include guard and no namespace: each simd_*.h
// includes this inside its own namespace and target region.

template <int M, int N>
EXL3_INLINE void clear_tile(F32 (&acc)[M][N]) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) acc[m][n] = F32::set(0);
}

/// Vector n of row m from p[m * stride + n * width].
template <int M, int N>
EXL3_INLINE void load_tile(F32 (&acc)[M][N], const float* p, int64_t stride) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) acc[m][n] = F32::load(p + m * stride + n * F32::width);
}

/// Vector n of row m to p[m * stride + n * width].
template <int M, int N>
EXL3_INLINE void store_tile(const F32 (&acc)[M][N], float* p, int64_t stride) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) acc[m][n].store(p + m * stride + n * F32::width);
}

/// acc[m][n] += the lane products of x_m and w_n over k values, one FMA per lane and step, in order
/// of k: the value of acc[m][n] does not depend on M or N.
/// @param x  M rows interleaved by vector: value i of row m at x[(i / width * M + m) * width + i %
/// width],
///           zero from k up to the next multiple of width
/// @param w  N rows of f32, f16 or bf16, `stride` apart; nothing is read past k
template <int M, int N, typename W>
EXL3_INLINE void dot_tile(const float* x, const W* w, int64_t stride, int64_t k, F32 (&acc)[M][N]) {
    int64_t i = 0;
    for (; i + F32::width <= k; i += F32::width, x += M * F32::width) {
        // The shorter side waits in registers: 3 x 4 accumulators and 3 more leave AVX2 one to
        // load.
        if constexpr (M < N) {
            F32 row[M];
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) row[m] = F32::load(x + m * F32::width);
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) {
                const F32 v = F32::load(w + n * stride + i);
#pragma GCC unroll 8
                for (int m = 0; m < M; ++m) acc[m][n] = fma(row[m], v, acc[m][n]);
            }
        } else {
            F32 row[N];
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) row[n] = F32::load(w + n * stride + i);
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) {
                const F32 v = F32::load(x + m * F32::width);
#pragma GCC unroll 8
                for (int n = 0; n < N; ++n) acc[m][n] = fma(v, row[n], acc[m][n]);
            }
        }
    }
    if (i == k) return;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
        const F32 row = F32::load(w + n * stride + i, k - i);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) acc[m][n] = fma(F32::load(x + m * F32::width), row, acc[m][n]);
    }
}

/// The register blocks of outer_tile that fill this tier's registers: kTileRows x kTileVectors.
inline constexpr int kTileRows = F32::width == 16 ? 12 : F32::width == 8 ? 6 : 4;
inline constexpr int kTileVectors = F32::width == 1 ? 4 : 2;

/// acc[m][v] += sum over i < k of a(m, i) * b(i, v-th vector), in order of i.
/// @param a  element (m, i) at a[m * a_row + i * a_step]
/// @param b  row i at b + i * b_step, V vectors long; f32, f16 or bf16
template <int M, int V, typename B>
EXL3_INLINE void outer_tile(const float* a, int64_t a_row, int64_t a_step, const B* b,
                            int64_t b_step, int64_t k, F32 (&acc)[M][V]) {
    for (int64_t i = 0; i < k; ++i, a += a_step, b += b_step) {
        F32 row[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) row[v] = F32::load(b + v * F32::width);
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) {
            const F32 x = F32::set(a[m * a_row]);
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) acc[m][v] = fma(x, row[v], acc[m][v]);
        }
    }
}
