// Attention of many rows: matrix units in f16, softmax in f32 along the way (the online softmax of
// FlashAttention, arXiv 2205.14135).
//
// A block takes consecutive rows of one sequence and head, 16 a warp, and walks over the tokens
// they see, a tile of keys and values at a time; the next tile is on its way while this one is
// used.
#include "gpu/attention.cuh"

namespace exl3::gpu {
namespace {

/// Shape of the work for heads of up to kDim channels.
template <int kDim>
struct Tile {
    static constexpr int kWarps = kDim > 128 ? 4 : 8;
    static constexpr int kRows = 16 * kWarps;
    static constexpr int kTokens = kDim > 128 ? 32 : 64;
    static constexpr int kThreads = kWarps * kWarp;
    static constexpr int kPitch = kDim + 8;  // rows start in different banks
    struct Shared {
        __half keys[2][kTokens][kPitch];
        __half values[2][kTokens][kPitch];
    };
};

/// Rows of one sequence that a block takes.
struct RowTile {
    int sequence = -1, first = 0, rows = 0, kv_len = 0;  ///< rows: of the sequence in the batch
    __device__ int position(int row) const { return kv_len - rows + row; }
};

template <int kRows>
__device__ RowTile find_rows(const AttentionKernelArgs& a, int tile) {
    for (int s = 0; s < a.seq.count; ++s) {
        const int rows = a.seq.q_start[s + 1] - a.seq.q_start[s];
        if (rows <= kDecodeRows) continue;
        const int tiles = (rows + kRows - 1) / kRows;
        // The last rows see most, so they come first.
        if (tile < tiles) return {s, (tiles - 1 - tile) * kRows, rows, a.seq.kv_len[s]};
        tile -= tiles;
    }
    return {};
}

template <int kDim, bool kQuantized>
__device__ void fetch(const AttentionKernelArgs& a, const RowTile& tile, int kv_head, int token,
                      typename Tile<kDim>::Shared& shared, int stage) {
    using T = Tile<kDim>;
    const int64_t slot = a.seq.slot(tile.sequence, token);
    for (int e = threadIdx.x; e < T::kTokens * (kDim / 8); e += T::kThreads) {
        const int t = e / (kDim / 8), channel = e % (kDim / 8) * 8;
        const bool real = token + t < tile.kv_len && channel < a.dim;
        const int64_t row = (slot + t) * a.kv_heads + kv_head;
        __half *k = &shared.keys[stage][t][channel], *v = &shared.values[stage][t][channel];
        if constexpr (kQuantized) {
            *reinterpret_cast<uint4*>(k) =
                real ? load_channels<true>(a.k, row, a.dim, channel) : uint4{};
            *reinterpret_cast<uint4*>(v) =
                real ? load_channels<true>(a.v, row, a.dim, channel) : uint4{};
        } else {
            const int64_t at = real ? row * a.dim + channel : 0;
            copy16_async(k, static_cast<const __half*>(a.k.data) + at, real);
            copy16_async(v, static_cast<const __half*>(a.v.data) + at, real);
        }
    }
    commit_copies();
}

/// One warp's 16 rows.
template <int kDim>
struct RowSums {
    uint32_t queries[kDim / 16][4];
    float value[kDim / 8][4];
    float top[2], total[2];  // of rows lane / 4 and lane / 4 + 8; totals of this lane's columns
};

template <int kDim>
__device__ void load_rows(const AttentionKernelArgs& a, const RowTile& tile, int head, int first,
                          int lane, float factor, RowSums<kDim>& r) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = first + g + i % 2 * 8, channel = k * 16 + 2 * t + i / 2 * 8;
            const bool real = row < tile.rows && channel < a.dim;
            const float* q =
                a.q +
                (static_cast<int64_t>(a.seq.q_start[tile.sequence] + (real ? row : 0)) * a.heads +
                 head) *
                    a.q_stride;
            r.queries[k][i] = real ? pack_halves(q[channel] * factor, q[channel + 1] * factor) : 0u;
        }
    for (auto& part : r.value)
        for (float& v : part) v = 0;
    r.top[0] = r.top[1] = -INFINITY;
    r.total[0] = r.total[1] = 0;
}

template <int kDim>
__device__ void take_tile(const AttentionKernelArgs& a, const RowTile& tile, int first, int token,
                          int lane, const __half (*keys)[Tile<kDim>::kPitch],
                          const __half (*values)[Tile<kDim>::kPitch], RowSums<kDim>& r) {
    constexpr int kTokens = Tile<kDim>::kTokens;
    const int g = lane / 4, t = lane % 4;
    float score[kTokens / 8][4] = {};
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k)
#pragma unroll
        for (int n = 0; n < kTokens / 16; ++n) {
            uint32_t b[4];
            load_blocks(b, &keys[n * 16 + lane / 16 * 8 + lane % 8][k * 16 + lane / 8 % 2 * 8]);
            mma_f16(score[2 * n], r.queries[k], b[0], b[1]);
            mma_f16(score[2 * n + 1], r.queries[k], b[2], b[3]);
        }

    const int low = tile.position(first), high = low + 15;  // positions of this warp's rows
    const bool all_visible =
        token + kTokens - 1 <= low && (a.window == 0 || token > high - a.window);
    float top[2] = {r.top[0], r.top[1]};
#pragma unroll
    for (int n = 0; n < kTokens / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float& s = score[n][i];
            if (a.softcap > 0) s = a.logit(s);
            if (!all_visible) {
                const int at = token + n * 8 + 2 * t + i % 2;
                const int position = low + g + i / 2 * 8;
                if (at > position || at < a.first_visible(position)) s = -INFINITY;
            }
            top[i / 2] = fmaxf(top[i / 2], s);
        }
    float keep[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        top[h] = fmaxf(top[h], shfl_xor(top[h], 1));
        top[h] = fmaxf(top[h], shfl_xor(top[h], 2));
        keep[h] = weight_of(r.top[h], top[h]);
        r.top[h] = top[h];
        r.total[h] *= keep[h];
        // A row that sees nothing yet: any finite number keeps its weights at zero.
        if (top[h] == -INFINITY) top[h] = 0;
    }
#pragma unroll
    for (int n = 0; n < kTokens / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            score[n][i] = exp2_fast(score[n][i] - top[i / 2]);
            r.total[i / 2] += score[n][i];
        }
#pragma unroll
    for (auto& part : r.value)
#pragma unroll
        for (int i = 0; i < 4; ++i) part[i] *= keep[i / 2];
#pragma unroll
    for (int k = 0; k < kTokens / 16; ++k) {
        const float(&x)[4] = score[2 * k];
        const float(&z)[4] = score[2 * k + 1];
        const uint32_t weights[4] = {pack_halves(x[0], x[1]), pack_halves(x[2], x[3]),
                                     pack_halves(z[0], z[1]), pack_halves(z[2], z[3])};
#pragma unroll
        for (int n = 0; n < kDim / 16; ++n) {
            uint32_t b[4];
            load_blocks_transposed(b, &values[k * 16 + lane % 16][n * 16 + lane / 16 * 8]);
            mma_f16(r.value[2 * n], weights, b[0], b[1]);
            mma_f16(r.value[2 * n + 1], weights, b[2], b[3]);
        }
    }
}

template <int kDim>
__device__ void store_rows(const AttentionKernelArgs& a, const RowTile& tile, int head, int first,
                           int lane, const RowSums<kDim>& r) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float total = r.total[h];
        total += shfl_xor(total, 1);
        total += shfl_xor(total, 2);
        const int row = first + g + h * 8;
        if (row >= tile.rows) continue;
        const float sink = a.sink(head), top = fmaxf(r.top[h], sink);
        const float mine = weight_of(r.top[h], top);
        const float factor = mine / (total * mine + weight_of(sink, top));
        float* y =
            a.y + (static_cast<int64_t>(a.seq.q_start[tile.sequence] + row) * a.heads + head) *
                      a.y_stride;
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n) {
            const int channel = n * 8 + 2 * t;
            if (channel >= a.dim) continue;
            y[channel] = r.value[n][2 * h] * factor;
            y[channel + 1] = r.value[n][2 * h + 1] * factor;
        }
    }
}

template <int kDim, bool kQuantized>
__global__ void __launch_bounds__(Tile<kDim>::kThreads) prefill(AttentionKernelArgs a) {
    using T = Tile<kDim>;
    extern __shared__ uint4 memory[];
    auto& shared = *reinterpret_cast<typename T::Shared*>(memory);
    wait_for_predecessor();
    let_successor_start();
    const RowTile tile = find_rows<T::kRows>(a, static_cast<int>(blockIdx.y));
    if (tile.sequence < 0) return;
    const int head = static_cast<int>(blockIdx.x), kv_head = head / a.group();
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int first = tile.first + warp * 16;
    RowSums<kDim> r;
    // With a soft cap the scale comes after the product.
    load_rows<kDim>(a, tile, head, first, lane, a.softcap > 0 ? 1.0f : a.logit(1), r);

    const int last = tile.position(min(tile.first + T::kRows, tile.rows) - 1);
    const int begin = a.first_visible(tile.position(tile.first)) / T::kTokens * T::kTokens;
    fetch<kDim, kQuantized>(a, tile, kv_head, begin, shared, 0);
    int stage = 0;
    for (int token = begin; token <= last; token += T::kTokens, stage ^= 1) {
        if (token + T::kTokens <= last) {
            fetch<kDim, kQuantized>(a, tile, kv_head, token + T::kTokens, shared, stage ^ 1);
            wait_for_copies<1>();
        } else {
            wait_for_copies<0>();
        }
        __syncthreads();
        const bool sees = first < tile.rows && token <= tile.position(first) + 15 &&
                          token + T::kTokens > a.first_visible(tile.position(first));
        if (sees)
            take_tile<kDim>(a, tile, first, token, lane, shared.keys[stage], shared.values[stage],
                            r);
        __syncthreads();
    }
    store_rows<kDim>(a, tile, head, first, lane, r);
}

template <int kDim, bool kQuantized>
void run(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens) {
    using T = Tile<kDim>;
    const int64_t tiles = tokens / T::kRows + std::min<int64_t>(sequences, tokens / kDecodeRows);
    allow_shared(prefill<kDim, kQuantized>, sizeof(typename T::Shared));
    launch(s, "attention",
           {dim3(static_cast<unsigned>(a.heads), static_cast<unsigned>(tiles)), dim3(T::kThreads),
            sizeof(typename T::Shared)},
           prefill<kDim, kQuantized>, a);
}

template <bool kQuantized>
void run_dim(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens) {
    if (a.dim <= 64)
        run<64, kQuantized>(s, a, sequences, tokens);
    else if (a.dim <= 128)
        run<128, kQuantized>(s, a, sequences, tokens);
    else
        run<256, kQuantized>(s, a, sequences, tokens);
}

}  // namespace

void attention_prefill(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens,
                       bool quantized) {
    if (quantized)
        run_dim<true>(s, a, sequences, tokens);
    else
        run_dim<false>(s, a, sequences, tokens);
}

}  // namespace exl3::gpu
