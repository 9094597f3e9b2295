#define EXL3_ISA_FILE "cpu/recurrence_chunks.cpp"
#include "cpu/isa.h"

#include "cpu/recurrence.h"

// A chunk of C tokens with the state S before it, g_t the decay from its start through token t:
//   (I + A) U = diag(write) V - diag(write g) K S,  A_ti = write_t (g_t / g_i) k_t.k_i for i < t
//   Y = scale (diag(g) Q S + P U) + skip V,         P_ti = (g_t / g_i) q_t.k_i      for i <= t
//   S <- g_C S + K^T diag(g_C / g) U
// (Yang et al., arXiv 2412.06464). Mamba2 has no A: U = diag(write) V. Everything of size C x dim
// is a product of matrices in register tiles; a panel of columns of S stays in the first-level
// cache through all three steps.
EXL3_ISA_BEGIN

inline constexpr int64_t kC = kRecurrenceChunk;
inline constexpr int kChunkRows = F32::width == 16 ? 8 : 4;
inline constexpr int kChunkVectors = F32::width == 1 ? 4 : 2;
inline constexpr int64_t kPanel = kChunkVectors * F32::width;
static_assert(kC % kChunkRows == 0 && kC % kPanel == 0);

inline int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

/// The scratch of the heads that share a head of q and k; what lies past the true sizes is zero.
struct ChunkScratch {
    int64_t keys = 0, values = 0;  ///< rounded up to whole tiles
    float* k = nullptr;            ///< (kC, keys)
    float* k_columns = nullptr;    ///< (keys, kC): steps between operands are constants then
    float* q_columns = nullptr;    ///< (keys, kC)
    float* qk = nullptr;           ///< (kC, kC): products of queries with keys, up to the diagonal
    float* kk = nullptr;           ///< (kC, kC): of keys with keys
    // Of the head at work:
    float* a = nullptr;  ///< (kC, kC): minus A
    float* p = nullptr;  ///< (kC, kC): scale P
    float* v = nullptr;  ///< (kC, kPanel)
    float* u = nullptr;  ///< (kC, kPanel)
    /// (heads, panels, keys, kPanel). Rows of whole states would be a power of two apart and meet
    /// in the same few sets of the first-level cache.
    float* states = nullptr;
    double log_decay[kC];  ///< from the start of the chunk
    float decay[kC];       ///< g_t
    float to_end[kC];      ///< g_C / g_t
    float write[kC];
};

/// Floats that the scratch takes; with `out` it is laid out from `at` on.
int64_t chunk_scratch(int64_t keys, int64_t values, int64_t heads, float* at, ChunkScratch* out) {
    const int64_t k = round_up(keys, kChunkRows), n = round_up(values, kPanel);
    const int64_t sizes[] = {kC * k,  k * kC,  k * kC,      kC * kC,     kC * kC,
                             kC * kC, kC * kC, kC * kPanel, kC * kPanel, heads * k * n};
    int64_t offset[11] = {};
    for (int i = 0; i < 10; ++i) offset[i + 1] = offset[i] + round_up(sizes[i], 16);
    if (!out) return offset[10];
    out->keys = k, out->values = n;
    float** const parts[] = {&out->k, &out->k_columns, &out->q_columns, &out->qk, &out->kk,
                             &out->a, &out->p,         &out->v,         &out->u,  &out->states};
    for (int i = 0; i < 10; ++i) *parts[i] = at + offset[i];
    return offset[10];
}

// Copies n values and zeroes the rest up to `to_size`.
inline void copy_padded(const float* from, int64_t n, float* to, int64_t to_size) {
    int64_t i = 0;
    for (; i < n; i += F32::width) {
        const int64_t some = lesser(F32::width, n - i);
        F32::load(from + i, some).store(to + i, some);
    }
    for (i = n; i < to_size; ++i) to[i] = 0;
}

// A head of q or k of one token, divided by its length where the op asks for it.
inline void load_chunk_key(const float* from, int64_t dim, float eps, float* to, int64_t padded) {
    copy_padded(from, dim, to, padded);
    if (eps <= 0) return;
    F32 acc = F32::set(0);
    for (int64_t i = 0; i < dim; i += F32::width) {
        const F32 x = F32::load(from + i, lesser(F32::width, dim - i));
        acc = fma(x, x, acc);
    }
    const F32 factor = F32::set(1 / std::sqrt(sum(acc) + eps));
    for (int64_t i = 0; i < dim; i += F32::width) {
        const int64_t some = lesser(F32::width, dim - i);
        (F32::load(to + i, some) * factor).store(to + i, some);
    }
}

// (rows, columns) to (columns, kC), both multiples of four; SSE is part of every x86-64.
inline void transpose(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
    for (int64_t i = 0; i < columns; i += 4)
        for (int64_t t = 0; t < rows; t += 4) {
            const float* x = from + t * stride + i;
            __m128 r0 = _mm_loadu_ps(x), r1 = _mm_loadu_ps(x + stride);
            __m128 r2 = _mm_loadu_ps(x + 2 * stride), r3 = _mm_loadu_ps(x + 3 * stride);
            _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
            float* y = to + i * kC + t;
            _mm_storeu_ps(y, r0);
            _mm_storeu_ps(y + kC, r1);
            _mm_storeu_ps(y + 2 * kC, r2);
            _mm_storeu_ps(y + 3 * kC, r3);
        }
}

// Queries and keys of the chunk of `count` tokens from row t0 on, in `rows` rows of tiles, and
// their products in tiles up to the diagonal.
inline void load_chunk_keys(const RecurrenceArgs& a, int64_t t0, int64_t count, int64_t rows,
                            int64_t key_head, ChunkScratch& c) {
    const int64_t keys = a.memory.shape[2], column = key_head * keys;
    // Queries pass through the place of the keys: only their columns are needed.
    for (const ConstView* from : {&a.q, &a.k}) {
        for (int64_t t = 0; t < rows; ++t) {
            float* to = c.k + t * c.keys;
            if (t < count)
                load_chunk_key(from->row<float>(t0 + t) + column, keys, a.normalize_eps, to,
                               c.keys);
            else
                copy_padded(nullptr, 0, to, c.keys);
        }
        transpose(c.k, c.keys, rows, c.keys, from == &a.q ? c.q_columns : c.k_columns);
    }
    for (int64_t t = 0; t < rows; t += kChunkRows)
        for (int64_t i = 0; i < t + kChunkRows; i += kPanel) {
            F32 acc[kChunkRows][kChunkVectors];
            clear_tile(acc);
            outer_tile(c.q_columns + t, 1, kC, c.k_columns + i, kC, c.keys, acc);
            store_tile(acc, c.qk + t * kC + i, kC);
            if (!a.delta) continue;
            clear_tile(acc);
            outer_tile(c.k_columns + t, 1, kC, c.k_columns + i, kC, c.keys, acc);
            store_tile(acc, c.kk + t * kC + i, kC);
        }
}

// Row t of A or P: products times factor * g_t / g_i below `end`, zeros from there on.
inline void weigh_row(const ChunkScratch& c, const float* products, int64_t t, int64_t end,
                      float factor, int64_t rows, float* to) {
    alignas(64) float gap[kC];
    for (int64_t i = 0; i < end; ++i) gap[i] = static_cast<float>(c.log_decay[t] - c.log_decay[i]);
    for (int64_t i = 0; i < end; i += F32::width) {
        const int64_t n = lesser(F32::width, end - i);
        (F32::load(products + i, n) * exp(F32::load(gap + i, n)) * F32::set(factor))
            .store(to + i, n);
    }
    for (int64_t i = end; i < rows; ++i) to[i] = 0;
}

// Gates, decays, A and P of one head.
inline void load_chunk_gates(const RecurrenceArgs& a, int64_t t0, int64_t count, int64_t rows,
                             int64_t head, ChunkScratch& c) {
    double sum = 0;
    for (int64_t t = 0; t < rows; ++t) {
        c.write[t] = t < count ? a.write.row<float>(t0 + t)[head] : 0;
        if (t < count) sum += a.log_decay.row<float>(t0 + t)[head];
        c.log_decay[t] = sum;
    }
    for (int64_t t = 0; t < rows; ++t) {
        c.decay[t] = std::exp(static_cast<float>(c.log_decay[t]));
        c.to_end[t] = std::exp(static_cast<float>(sum - c.log_decay[t]));
        weigh_row(c, c.qk + t * kC, t, t + 1, a.scale, rows, c.p + t * kC);
        if (a.delta) weigh_row(c, c.kk + t * kC, t, t, -c.write[t], rows, c.a + t * kC);
    }
}

// Rows [t, t + kChunkRows) of U for a panel of columns: v in c.v, the state before in `state`.
EXL3_INLINE void solve_rows(const ChunkScratch& c, const float* state, int64_t t) {
    F32 acc[kChunkRows][kChunkVectors];
    clear_tile(acc);
    outer_tile(c.k_columns + t, 1, kC, state, kPanel, c.keys, acc);
#pragma GCC unroll 8
    for (int m = 0; m < kChunkRows; ++m) {
        const F32 write = F32::set(c.write[t + m]),
                  seen = F32::set(-c.write[t + m] * c.decay[t + m]);
#pragma GCC unroll 4
        for (int j = 0; j < kChunkVectors; ++j)
            acc[m][j] =
                fma(write, F32::load(c.v + (t + m) * kPanel + j * F32::width), seen * acc[m][j]);
    }
    outer_tile(c.a + t * kC, kC, 1, c.u, kPanel, t, acc);
    // Inside the tile a row needs those before it.
#pragma GCC unroll 8
    for (int m = 1; m < kChunkRows; ++m)
#pragma GCC unroll 8
        for (int i = 0; i < m; ++i) {
            const F32 factor = F32::set(c.a[(t + m) * kC + t + i]);
#pragma GCC unroll 4
            for (int j = 0; j < kChunkVectors; ++j) acc[m][j] = fma(factor, acc[i][j], acc[m][j]);
        }
    store_tile(acc, c.u + t * kPanel, kPanel);
}

// Rows [t, t + kChunkRows) of Y for a panel, written as far as there are tokens and columns.
EXL3_INLINE void output_rows(const RecurrenceArgs& a, const ChunkScratch& c, const float* state,
                             int64_t t, float* y, int64_t count, int64_t columns, float skip) {
    F32 acc[kChunkRows][kChunkVectors];
    clear_tile(acc);
    outer_tile(c.q_columns + t, 1, kC, state, kPanel, c.keys, acc);
#pragma GCC unroll 8
    for (int m = 0; m < kChunkRows; ++m) {
        const F32 decay = F32::set(a.scale * c.decay[t + m]), own = F32::set(skip);
#pragma GCC unroll 4
        for (int j = 0; j < kChunkVectors; ++j)
            acc[m][j] =
                fma(own, F32::load(c.v + (t + m) * kPanel + j * F32::width), decay * acc[m][j]);
    }
    outer_tile(c.p + t * kC, kC, 1, c.u, kPanel, t + kChunkRows, acc);
    const int64_t stride = a.y.row_stride;
    if (t + kChunkRows <= count && columns == kPanel)
        return store_tile(acc, y + t * stride, stride);
    alignas(64) float tile[kChunkRows * kPanel];
    store_tile(acc, tile, kPanel);
    for (int64_t m = 0; m < kChunkRows && t + m < count; ++m)
        for (int64_t j = 0; j < columns; ++j) y[(t + m) * stride + j] = tile[m * kPanel + j];
}

// S <- g_C S + K^T (g_C / g) U for a panel; U is scaled in place.
EXL3_INLINE void update_state(const ChunkScratch& c, float* state, int64_t rows) {
    for (int64_t t = 0; t < rows; ++t)
        for (int64_t j = 0; j < kPanel; j += F32::width) {
            float* u = c.u + t * kPanel + j;
            (F32::load(u) * F32::set(c.to_end[t])).store(u);
        }
    const F32 decay = F32::set(c.decay[rows - 1]);
    for (int64_t i = 0; i < c.keys; i += kChunkRows) {
        F32 acc[kChunkRows][kChunkVectors];
        load_tile(acc, state + i * kPanel, kPanel);
#pragma GCC unroll 8
        for (int m = 0; m < kChunkRows; ++m)
#pragma GCC unroll 4
            for (int j = 0; j < kChunkVectors; ++j) acc[m][j] = acc[m][j] * decay;
        outer_tile(c.k + i, 1, c.keys, c.u, kPanel, rows, acc);
        store_tile(acc, state + i * kPanel, kPanel);
    }
}

inline void run_chunk_head(const RecurrenceArgs& a, int64_t t0, int64_t count, int64_t rows,
                           int64_t head, float* state, ChunkScratch& c) {
    const int64_t values = a.memory.shape[3];
    load_chunk_gates(a, t0, count, rows, head, c);
    const float skip = a.skip ? a.skip.as<float>()[head] : 0;
    for (int64_t column = 0; column < values; column += kPanel, state += c.keys * kPanel) {
        const int64_t columns = lesser(kPanel, values - column);
        for (int64_t t = 0; t < rows; ++t)
            copy_padded(t < count ? a.v.row<float>(t0 + t) + head * values + column : nullptr,
                        t < count ? columns : 0, c.v + t * kPanel, kPanel);
        float* y = a.y.row<float>(t0) + head * values + column;
        for (int64_t t = 0; t < rows; t += kChunkRows) {
            if (a.delta)
                solve_rows(c, state, t);
            else
                for (int64_t i = t * kPanel; i < (t + kChunkRows) * kPanel; i += F32::width)
                    (F32::load(c.v + i) * F32::set(c.write[i / kPanel])).store(c.u + i);
            output_rows(a, c, state, t, y, count, columns, skip);
        }
        update_state(c, state, rows);
    }
}

// Between a state in memory, (keys, values), and its panels.
inline void load_panels(const float* stored, int64_t keys, int64_t values, const ChunkScratch& c,
                        float* state) {
    for (int64_t column = 0; column < c.values; column += kPanel, state += c.keys * kPanel)
        for (int64_t i = 0; i < c.keys; ++i)
            copy_padded(stored ? stored + i * values + column : nullptr,
                        stored && i < keys ? lesser(kPanel, values - column) : 0,
                        state + i * kPanel, kPanel);
}
inline void store_panels(const float* state, int64_t keys, int64_t values, const ChunkScratch& c,
                         float* stored) {
    for (int64_t column = 0; column < values; column += kPanel, state += c.keys * kPanel)
        for (int64_t i = 0; i < keys; ++i) {
            const int64_t n = lesser(kPanel, values - column);
            copy_padded(state + i * kPanel, n, stored + i * values + column, n);
        }
}

void run_chunks(const RecurrenceArgs& a, const SlotRows& rows, int64_t head, int64_t count,
                float* scratch) {
    const int64_t heads = a.memory.shape[1], keys = a.memory.shape[2], values = a.memory.shape[3];
    ChunkScratch c;
    chunk_scratch(keys, values, count, scratch, &c);
    const int64_t size = c.keys * c.values;
    const auto stored = [&](int64_t i) {
        return a.memory.row<float>((rows.slot * heads + head + i) * keys);
    };
    for (int64_t i = 0; i < count; ++i)
        load_panels(rows.fresh ? nullptr : stored(i), keys, values, c, c.states + i * size);
    for (int64_t t = rows.begin; t < rows.end; t += kC) {
        const int64_t tokens = lesser(kC, rows.end - t), padded = round_up(tokens, kChunkRows);
        load_chunk_keys(a, t, tokens, padded, head / (heads / a.key_heads), c);
        for (int64_t i = 0; i < count; ++i)
            run_chunk_head(a, t, tokens, padded, head + i, c.states + i * size, c);
    }
    for (int64_t i = 0; i < count; ++i)
        store_panels(c.states + i * size, keys, values, c, stored(i));
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

RecurrenceKernel recurrence_chunks(const Stream& s) {
    return EXL3_ISA_PICK(s, run_chunks);
}

int64_t recurrence_chunks_scratch(const RecurrenceArgs& a, int64_t heads) {
    // AVX-512 has the largest tiles, so its sizes hold for every tier.
    return avx512::chunk_scratch(a.memory.shape[2], a.memory.shape[3], heads, nullptr, nullptr);
}

}  // namespace exl3::cpu
#endif
