#pragma once
// The trellis search of encode_tiles, one number of bits: costs forward, then the path backward.
//
// Forward: a thread block of 512 threads holds the whole codebook in registers, 128 states a
// thread, and carries the costs of all edges of one or two tiles through shared memory in f16. It
// keeps minima only, no choices: two instructions and a minimum per two states. Every kStride-th
// row of costs goes to memory. Costs are kept small by subtracting a row's minimum every kNormalize
// positions.
//
// Backward: one warp per tile goes from stored row to stored row. It scores the 2^(bits * kStride)
// ways between two rows again, in f32 and with the targets as given, and takes the best.
#include <cmath>

#include "gpu/vendor.h"
#include "trellis/codebook.h"
#include "trellis/tile.h"

namespace exl3::gpu::search {

inline constexpr int kThreads = 512, kWarps = kThreads / kWarp;
/// Positions between two subtractions of the least cost.
inline constexpr int kNormalize = 8;
/// Where the free pass begins; the path is fixed where it crosses position 0.
inline constexpr int kMiddle = kTileSize / 2;

/// An edge is the low 16 - bits bits of a state: every edge has 2^bits ways in.
constexpr int edges(int bits) {
    return 65536 >> bits;
}
/// Positions from one stored row to the next: up to 256 ways between two of them.
constexpr int stride(int bits) {
    return bits <= 4 ? (bits == 1 ? 8 : bits == 2 ? 4 : 2) : 1;
}
constexpr int stored_rows(int bits) {
    return kTileSize / stride(bits) + 1;
}
/// Tiles that a thread block searches at once: what shared memory holds.
constexpr int together(int bits) {
    return bits == 1 ? 1 : 2;
}
/// Values are scaled so that squared errors stay above f16's subnormal range.
constexpr float value_scale(int bits) {
    return bits >= 7 ? 8.0f : bits >= 5 ? 4.0f : 1.0f;
}
/// Targets further out count as this: past the codebook's end (at most 3.98) they choose the same
/// path, and their costs would drown the others in f16.
inline constexpr float kFarthest = 5.0f;

struct Args {
    const float* target = nullptr;  ///< (tiles, 256)
    int tiles = 0;
    __half* rows = nullptr;       ///< (tiles, stored_rows, edges) costs
    int32_t* crossing = nullptr;  ///< (tiles) the edge from position 255 to position 0
    bool free = true;             ///< first pass: any edge may begin
    CodebookKind kind = CodebookKind::mul1;
    uint32_t multiplier = 0;
    uint16_t* states = nullptr;  ///< (tiles, 256), by the second pass
    float* values = nullptr;     ///< (tiles, 256) or null
};

__device__ __forceinline__ float value_of(const Args& a, uint32_t state) {
    uint32_t h = state * a.multiplier;
    if (a.kind == CodebookKind::mul1) {
        const uint32_t sum = (h & 0xff) + (h >> 8 & 0xff) + (h >> 16 & 0xff) + (h >> 24);
        return __half2float(__hfma(__ushort_as_half(static_cast<unsigned short>(0x6400 + sum)),
                                   __ushort_as_half(0x1EEE), __ushort_as_half(0xC931)));
    }
    if (a.kind == CodebookKind::three_inst) h += kThreeInstAddend;
    h = (h & kHalfPairMask) ^ kHalfPairXor;
    return __half2float(__ushort_as_half(static_cast<unsigned short>(h))) +
           __half2float(__ushort_as_half(static_cast<unsigned short>(h >> 16)));
}
/// The weight itself, rounded as the format says.
__device__ __forceinline__ float weight_at(const Args& a, uint32_t state) {
    return __half2float(__float2half_rn(value_of(a, state)));
}
__device__ __forceinline__ float near(float w) {
    // Never a NaN, so that a path exists whatever the target.
    return w > kFarthest ? kFarthest : w >= -kFarthest ? w : -kFarthest;
}

__device__ __forceinline__ __half2 as_half2(uint32_t v) {
    return *reinterpret_cast<const __half2*>(&v);
}
__device__ __forceinline__ uint32_t as_word(__half2 v) {
    return *reinterpret_cast<const uint32_t*>(&v);
}
__device__ __forceinline__ __half2 twice_low(uint32_t v) {
    return as_half2(__byte_perm(v, 0, 0x1010));
}
__device__ __forceinline__ __half2 twice_high(uint32_t v) {
    return as_half2(__byte_perm(v, 0, 0x3232));
}

/// Costs of a row in shared memory. Up to 3 bits as halves in the order of edges, 16 bytes at a
/// time swizzled against bank conflicts; at 4 to 6 bits doubled, a word per edge, ready for use;
/// beyond that as halves so ordered that the ways into an edge stand together.
template <int K>
struct Row {
    static constexpr int kBytes = K >= 4 && K <= 6 ? edges(K) * 4 : edges(K) * 2;
    static __device__ __forceinline__ int chunk(int c) { return c ^ (c >> 3 & 7); }
};

/// Pairs of states that a thread owns: 64, two halves each.
inline constexpr int kPairs = 64;

/// State i of half `side` of pair `pair` of a thread.
template <int K>
__device__ __forceinline__ uint32_t own_state(int thread, int pair, int side) {
    if constexpr (K <= 6) {
        constexpr int kEach = kPairs >> K;  // pairs of edges
        return static_cast<uint32_t>(pair / kEach * edges(K) + thread * (128 >> K) +
                                     pair % kEach * 2 + side);
    } else if constexpr (K == 7) {
        return static_cast<uint32_t>((2 * pair + side) * edges(K) + thread);
    } else {
        return static_cast<uint32_t>(((thread & 1) * 128 + 2 * pair + side) * edges(K) +
                                     (thread >> 1));
    }
}

/// Halves that a thread's minima fill, as pairs of neighbouring edges; one value beyond 6 bits.
template <int K>
inline constexpr int kMinima = K <= 6 ? kPairs >> K : 1;

/// The least costs of a thread's edges after one more position.
template <int K, bool kSubtract>
__device__ __forceinline__ void step(const uint8_t* row, const __half2 (&v)[kPairs], __half2 w,
                                     __half2 base, int thread, __half2 (&m)[kMinima<K>]) {
    const __half2 never = as_half2(0x7c007c00u);
#pragma unroll
    for (__half2& x : m) x = never;
    const auto add = [&](__half2& best, int pair, __half2 cost) {
        if constexpr (kSubtract) cost = __hsub2(cost, base);
        const __half2 d = __hsub2(v[pair], w);
        best = __hmin2(best, __hfma2(d, d, cost));
    };
    if constexpr (K <= 3) {
        // 2^K neighbouring edges come from one edge: the costs of 64 >> (2 K - 1) ... from each
        // way.
        constexpr int kEach = kPairs >> K;                   // pairs of edges
        constexpr int kFrom = K == 1 ? 32 : K == 2 ? 8 : 2;  // edges they come from, per way
        constexpr int kPairsPer = kEach / kFrom;             // pairs that share one
#pragma unroll
        for (int k = 0; k < 1 << K; ++k) {
            const int first = k * (edges(K) >> K) + thread * kFrom;
            if constexpr (kFrom >= 8) {
#pragma unroll
                for (int c = 0; c < kFrom / 8; ++c) {
                    const uint4 four =
                        *reinterpret_cast<const uint4*>(row + Row<K>::chunk(first / 8 + c) * 16);
                    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                    for (int i = 0; i < 8; ++i) {
                        const __half2 cost =
                            i & 1 ? twice_high(words[i / 2]) : twice_low(words[i / 2]);
#pragma unroll
                        for (int p = 0; p < kPairsPer; ++p) {
                            const int j = (c * 8 + i) * kPairsPer + p;
                            add(m[j], k * kEach + j, cost);
                        }
                    }
                }
            } else {
                const uint32_t two = *reinterpret_cast<const uint32_t*>(
                    row + Row<K>::chunk(first / 8) * 16 + first % 8 * 2);
#pragma unroll
                for (int j = 0; j < kEach; ++j)
                    add(m[j], k * kEach + j, j < kPairsPer ? twice_low(two) : twice_high(two));
            }
        }
    } else if constexpr (K <= 6) {
        constexpr int kEach = kPairs >> K;
        const int from = thread * (128 >> K) >> K;
        const uint32_t* costs = reinterpret_cast<const uint32_t*>(row) + from;
#pragma unroll
        for (int k = 0; k < 1 << K; ++k) {
            const __half2 cost = as_half2(costs[k * (edges(K) >> K)]);
#pragma unroll
            for (int j = 0; j < kEach; ++j) add(m[j], k * kEach + j, cost);
        }
    } else {
        const uint4* costs =
            reinterpret_cast<const uint4*>(row) + (K == 7 ? (thread >> 7) * 16 : (thread & 1) * 16);
#pragma unroll
        for (int c = 0; c < 16; ++c) {
            const uint4 four = costs[c];
            const uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) add(m[0], c * 4 + i, as_half2(words[i]));
        }
        __half2 other = __lowhigh2highlow(m[0]);
        m[0] = __hmin2(m[0], other);
        if constexpr (K == 8) m[0] = __hmin2(m[0], as_half2(shfl_xor(as_word(m[0]), 1)));
    }
}

/// Writes a thread's minima where the next position reads them.
template <int K>
__device__ __forceinline__ void put(uint8_t* row, const __half2 (&m)[kMinima<K>], int thread) {
    if constexpr (K <= 3) {
        constexpr int kChunks = (128 >> K) / 8;
#pragma unroll
        for (int c = 0; c < kChunks; ++c)
            *reinterpret_cast<uint4*>(row + Row<K>::chunk(thread * kChunks + c) * 16) =
                make_uint4(as_word(m[4 * c]), as_word(m[4 * c + 1]), as_word(m[4 * c + 2]),
                           as_word(m[4 * c + 3]));
    } else if constexpr (K <= 6) {
        uint2* to = reinterpret_cast<uint2*>(row) + thread * kMinima<K>;
#pragma unroll
        for (int j = 0; j < kMinima<K>; ++j)
            to[j] = make_uint2(as_word(__low2half2(m[j])), as_word(__high2half2(m[j])));
    } else if constexpr (K == 7) {
        reinterpret_cast<__half*>(row)[(thread & 3) * 128 + thread / 4] = __low2half(m[0]);
    } else if ((thread & 1) == 0) {
        reinterpret_cast<__half*>(row)[thread >> 1] = __low2half(m[0]);
    }
}

/// Stores a thread's minima in the order of edges.
template <int K>
__device__ __forceinline__ void store(__half* to, const __half2 (&m)[kMinima<K>], int thread) {
    if constexpr (K <= 4) {
        uint4* at = reinterpret_cast<uint4*>(to) + thread * (kMinima<K> / 4);
#pragma unroll
        for (int c = 0; c < kMinima<K> / 4; ++c)
            __stcs(at + c, make_uint4(as_word(m[4 * c]), as_word(m[4 * c + 1]),
                                      as_word(m[4 * c + 2]), as_word(m[4 * c + 3])));
    } else if constexpr (K <= 6) {
        __half2* at = reinterpret_cast<__half2*>(to) + thread * kMinima<K>;
#pragma unroll
        for (int j = 0; j < kMinima<K>; ++j) at[j] = m[j];
    } else if constexpr (K == 7) {
        to[thread] = __low2half(m[0]);
    } else if ((thread & 1) == 0) {
        to[thread >> 1] = __low2half(m[0]);
    }
}

template <int K>
constexpr size_t shared_bytes() {
    return 2 * static_cast<size_t>(together(K)) * Row<K>::kBytes;
}

/// One pass over tiles [together * blockIdx.x, ...).
template <int K>
__global__ __launch_bounds__(kThreads, 1) void forward(const __grid_constant__ Args a) {
    constexpr int kTiles = together(K), kStride = stride(K), kRowBytes = Row<K>::kBytes;
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ uint32_t targets[kTiles][kTileSize];
    __shared__ uint32_t least[kTiles][kWarps];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
    const int first_tile = static_cast<int>(blockIdx.x) * kTiles;
    const int first = a.free ? kMiddle : 0;
    __half2 v[kPairs];
#pragma unroll
    for (int p = 0; p < kPairs; ++p)
        v[p] = __floats2half2_rn(weight_at(a, own_state<K>(thread, p, 0)) * value_scale(K),
                                 weight_at(a, own_state<K>(thread, p, 1)) * value_scale(K));
    wait_for_predecessor();
    let_successor_start();
    for (int i = thread; i < kTiles * kTileSize; i += kThreads) {
        const int tile = min(first_tile + i / kTileSize, a.tiles - 1);
        const float w = near(a.target[static_cast<int64_t>(tile) * kTileSize + i % kTileSize]);
        const __half h = __float2half_rn(w * value_scale(K));
        targets[i / kTileSize][i % kTileSize] = as_word(__half2half2(h));
    }
    const auto rows_of = [&](int t) {
        return a.rows + static_cast<int64_t>(first_tile + t) * stored_rows(K) * edges(K);
    };
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        // Any edge may begin, or one alone.
        __half2 m[kMinima<K>];
        const int from = a.free || first_tile + t >= a.tiles ? -1 : a.crossing[first_tile + t];
        const auto cost = [&](int edge) {
            return from < 0 || edge == from ? __half(0.0f) : __ushort_as_half(0x7c00);
        };
#pragma unroll
        for (int j = 0; j < kMinima<K>; ++j) {
            const int edge = static_cast<int>(own_state<K>(thread, j, 0)) % edges(K);
            m[j] = __halves2half2(cost(edge), cost(K <= 6 ? edge + 1 : edge));
        }
        put<K>(shared + t * kRowBytes, m, thread);
        if (!a.free && first_tile + t < a.tiles) store<K>(rows_of(t), m, thread);
    }
    __syncthreads();
    for (int i = 0; i < kTileSize; ++i) {
        const uint8_t* from = shared + (i & 1) * kTiles * kRowBytes;
        uint8_t* to = shared + (~i & 1) * kTiles * kRowBytes;
        const bool keep = (i + 1) % kStride == 0 && (!a.free || i + 1 >= kMiddle);
        const bool after = i > 0 && i % kNormalize == 0, before = (i + 1) % kNormalize == 0;
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            const __half2 w = as_half2(targets[t][(first + i) % kTileSize]);
            __half2 m[kMinima<K>];
            if (after) {
                uint32_t low = least[t][0];
#pragma unroll
                for (int x = 1; x < kWarps; ++x) low = min(low, least[t][x]);
                step<K, true>(from + t * kRowBytes, v, w, twice_low(low), thread, m);
            } else {
                step<K, false>(from + t * kRowBytes, v, w, w, thread, m);
            }
            put<K>(to + t * kRowBytes, m, thread);
            if (keep && first_tile + t < a.tiles)
                store<K>(rows_of(t) + static_cast<int64_t>((i + 1) / kStride) * edges(K), m,
                         thread);
            if (before) {
                __half2 low = m[0];
#pragma unroll
                for (int j = 1; j < kMinima<K>; ++j) low = __hmin2(low, m[j]);
                low = __hmin2(low, __lowhigh2highlow(low));
                uint32_t bits = as_word(low) & 0xffff;  // costs are positive: ordered like integers
#pragma unroll
                for (int x = 1; x < kWarp; x *= 2) bits = min(bits, shfl_xor(bits, x));
                if (lane == 0) least[t][warp] = bits;
            }
        }
        __syncthreads();
    }
}

/// The least of `value` over the warp and the lowest `index` that has it.
__device__ __forceinline__ int lowest(float value, int index) {
#pragma unroll
    for (int x = 1; x < kWarp; x *= 2) {
        const float other = shfl_xor(value, x);
        const int at = shfl_xor(index, x);
        if (other < value || (other == value && at < index)) value = other, index = at;
    }
    return index;
}

inline constexpr int kTraceWarps = 4;

/// One warp per tile. After the first pass it finds `crossing`, after the second the states.
template <int K>
__global__ __launch_bounds__(kTraceWarps* kWarp) void backward(const __grid_constant__ Args a) {
    constexpr int kStride = stride(K), kWays = 1 << (K * kStride), kEdges = edges(K);
    wait_for_predecessor();
    let_successor_start();
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int tile =
        static_cast<int>(blockIdx.x) * kTraceWarps + static_cast<int>(threadIdx.x) / kWarp;
    if (tile >= a.tiles) return;
    const __half* rows = a.rows + static_cast<int64_t>(tile) * stored_rows(K) * kEdges;
    const float* target = a.target + static_cast<int64_t>(tile) * kTileSize;
    int edge = 0;
    if (a.free) {
        const __half* last = rows + static_cast<int64_t>(stored_rows(K) - 1) * kEdges;
        float best = INFINITY;
        int at = 0;
        for (int e = lane; e < kEdges; e += kWarp) {
            const float cost = __half2float(last[e]);
            if (cost < best) best = cost, at = e;
        }
        edge = lowest(best, at);
    } else {
        edge = a.crossing[tile];
    }
    const int stop = a.free ? kMiddle : 0, first = a.free ? kMiddle : 0;
    for (int i = kTileSize; i > stop; i -= kStride) {
        const __half* row = rows + static_cast<int64_t>(i / kStride - 1) * kEdges;
        float best = INFINITY;
        int way = 0;
        for (int x = lane; x < kWays; x += kWarp) {
            int e = edge;
            float cost = 0;
#pragma unroll
            for (int r = 0; r < kStride; ++r) {
                const int state = (x >> (r * K) & ((1 << K) - 1)) * kEdges + e;
                const float w = near(target[(first + i - 1 - r) % kTileSize]);
                const float d = (weight_at(a, static_cast<uint32_t>(state)) - w) * value_scale(K);
                cost = fmaf(d, d, cost);
                e = state >> K;
            }
            cost += __half2float(row[e]);
            if (cost < best) best = cost, way = x;
        }
        way = lowest(best, way);
#pragma unroll
        for (int r = 0; r < kStride; ++r) {
            const int state = (way >> (r * K) & ((1 << K) - 1)) * kEdges + edge;
            if (!a.free && lane == 0) {
                const int64_t at = static_cast<int64_t>(tile) * kTileSize + i - 1 - r;
                a.states[at] = static_cast<uint16_t>(state);
                if (a.values) a.values[at] = weight_at(a, static_cast<uint32_t>(state));
            }
            edge = state >> K;
        }
    }
    if (a.free && lane == 0) a.crossing[tile] = edge;
}

/// The kernels of one number of bits.
struct Kernels {
    void (*forward)(Args) = nullptr;
    void (*backward)(Args) = nullptr;
    size_t shared = 0;
};
template <int K>
Kernels kernels();
template <int K>
Kernels pick() {
    return {forward<K>, backward<K>, shared_bytes<K>()};
}

}  // namespace exl3::gpu::search
