#pragma once
// exl3_linear of 1 to 8 rows: one pass over the weights at the speed of memory (sm_90 and later).
//
// Work is a list of blocks of 128 x 128 weights, [column group][k block], cut into as many equal
// ranges as there are thread blocks, one per multiprocessor. In a thread block warp w takes 64 of
// the 128 columns (w % 2) of every kLanes-th block of the range (w / 2) and streams its weights
// through a ring of its own in shared memory: no warp waits for another. The last warp to end its
// part of a column group adds the parts. A group that several thread blocks share is finished by
// the one that has its first block; the others leave their sums in memory, where anything
// but zero tells that it has arrived. Sums are taken in an order that depends on the shape and
// the number of multiprocessors alone, not on rows or timing.
#include <type_traits>

#include "gpu/elementwise.cuh"
#include "gpu/exl3_gemv.h"
#include "gpu/exl3_runs.cuh"

namespace exl3::gpu {
#if !defined(__HIP_PLATFORM_AMD__)

namespace gemv {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// A bulk copy ring of one warp; lane 0 drives it.
struct Ring {
    uint32_t data, bars;
    __device__ void init(int stages) const {
        for (int s = 0; s < stages; ++s)
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bars + 8 * s) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __device__ void fetch(int stage, const void* from, int bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bars + 8 * stage),
                     "r"(bytes)
                     : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
            "[%3];" ::"r"(data + stage * bytes),
            "l"(from), "r"(bytes), "r"(bars + 8 * stage)
            : "memory");
    }
    __device__ void wait(int stage, uint32_t parity) const {
        asm volatile(
            "{\n.reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
            "@p bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(bars + 8 * stage),
            "r"(parity)
            : "memory");
    }
};

__device__ __forceinline__ const GemvMatrix& matrix_of(const GemvArgs& a, int group) {
    int i = 0;
#pragma unroll
    for (int j = 1; j < kGemvMatrices; ++j)
        if (j < a.matrices && group >= a.matrix[j].first_group) i = j;
    return a.matrix[i];
}

/// Where the activation of row `r` of a k block goes: (row / 64, row % 64 / 16, index of its word
/// among the 16 B registers of a half).
struct Slot {
    int half, tile, index;
    __device__ explicit Slot(int r) {
        const int in_tile = r & 15;
        half = r >> 6;
        tile = (r >> 4) & 3;
        index = (in_tile & 6) * 2 + (in_tile >> 3) * 2 + (in_tile & 1);
    }
};

/// A lane's share of a row and k block as memory holds it. `other`: up, or the weight of the norm.
struct Raw {
    float4 x, other;
    uint2 suh;
};
__device__ __forceinline__ float4 load_row(const float* row, int k, int in) {
    const float* x = row + k;
    if (k + 4 <= in && (reinterpret_cast<uintptr_t>(x) & 15) == 0)
        return *reinterpret_cast<const float4*>(x);
    return make_float4(k < in ? x[0] : 0.0f, k + 1 < in ? x[1] : 0.0f, k + 2 < in ? x[2] : 0.0f,
                       k + 3 < in ? x[3] : 0.0f);
}
/// What never changes, and what the kernels before this one make.
__device__ __forceinline__ void load_weights(const GemvArgs& a, const GemvMatrix& m, int k_block,
                                             int lane, Raw& raw) {
    const int k = k_block * 128 + lane * 4;
    raw.suh = *reinterpret_cast<const uint2*>(m.suh + k);
    raw.other = make_float4(1, 1, 1, 1);
    if (a.before == GemvArgs::Before::norm && a.norm_weight.data && k < a.in) {
        const auto weight = [&](int i) {
            return k + i < a.in ? a.norm_weight[k + i] + a.norm_weight_bias : 0.0f;
        };
        raw.other = make_float4(weight(0), weight(1), weight(2), weight(3));
    }
}
__device__ __forceinline__ void load_x(const GemvArgs& a, int k_block, int row, int lane,
                                       Raw& raw) {
    const int k = k_block * 128 + lane * 4;
    raw.x = load_row(a.x + row * a.x_stride, k, a.in);
    if (a.before == GemvArgs::Before::gate && a.up)
        raw.other = load_row(a.up + row * a.up_stride, k, a.in);
}
/// What the matrices see of x, element by element.
__device__ __forceinline__ float seen(const GemvArgs& a, float x, float other, float inverse_rms) {
    if (a.before == GemvArgs::Before::norm) return x * inverse_rms * other;
    if (a.before == GemvArgs::Before::gate) return activate(x, a.act) * other;
    return x;
}

/// x * suh of one row and k block, transformed and rounded, by one warp.
template <Feed A>
__device__ __forceinline__ void prepare(const GemvArgs& a, const Raw& raw, int row,
                                        float inverse_rms, uint8_t* act, BlockScale* scale,
                                        int lane) {
    const float2 s01 = __half22float2(*reinterpret_cast<const __half2*>(&raw.suh.x));
    const float2 s23 = __half22float2(*reinterpret_cast<const __half2*>(&raw.suh.y));
    float v[4] = {seen(a, raw.x.x, raw.other.x, inverse_rms) * s01.x,
                  seen(a, raw.x.y, raw.other.y, inverse_rms) * s01.y,
                  seen(a, raw.x.z, raw.other.z, inverse_rms) * s23.x,
                  seen(a, raw.x.w, raw.other.w, inverse_rms) * s23.y};
    hadamard128_warp(v, lane);
    uint32_t peak_bits = 0;
#pragma unroll
    for (const float f : v) peak_bits = max(peak_bits, __float_as_uint(f) & 0x7fffffffu);
    peak_bits = __reduce_max_sync(~0u, peak_bits);
    // A NaN or an infinity reaches every output of its row through the scale, not the products.
    const bool finite = peak_bits < 0x7f800000u;
    const float peak = finite ? __uint_as_float(peak_bits) : 0.0f;
    const bool zero = peak < 1e-30f;
    constexpr float kUnit = 0x1.bb8p-8f, kHadamard = 0.08838834764831845f;
    if constexpr (is_half(A)) {
        const float inverse = zero ? 0.0f : 1.0f / peak;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Slot at(lane * 4 + i);
            const __half h = __float2half_rn(v[i] * inverse);
            if constexpr (A == Feed::half1)
                reinterpret_cast<__half2*>(
                    act)[at.half * 64 + (at.index >> 2) * 16 + at.tile * 4 + (at.index & 3)] =
                    __half2half2(h);
            else
                reinterpret_cast<__half*>(act)[at.half * 512 + (at.index >> 3) * 256 +
                                               (row * 4 + at.tile) * 8 + (at.index & 7)] =
                    zero ? __half(0.0f) : h;
        }
        if (lane == 0) scale->scale = finite ? peak * kHadamard : __int_as_float(0x7fffffff);
    } else {
        const float step = peak * (1.0f / 127), inverse = zero ? 0.0f : 127.0f / peak;
        int sum = 0, sum_rest = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Slot at(lane * 4 + i);
            const float first = rintf(v[i] * inverse);
            const float left = fmaf(-first, step, v[i]) * (254 * inverse);
            const int q = zero ? 0 : static_cast<int>(first);
            const int rest = zero ? 0 : static_cast<int>(fminf(fmaxf(rintf(left), -127), 127));
            sum += q;
            sum_rest += rest;
            if constexpr (A == Feed::byte1) {
                uint32_t* word = reinterpret_cast<uint32_t*>(act) + at.half * 128 +
                                 (at.index >> 2) * 32 + at.tile * 4 + (at.index & 3);
                word[0] = static_cast<uint8_t>(q) * 0x01010101u;
                word[16] = static_cast<uint8_t>(rest) * 0x01010101u;
            } else {
                constexpr int kSet = A == Feed::byte4 ? 64 : 512;
                uint8_t* byte = act + at.half * (A == Feed::byte4 ? 512 : 1024) +
                                row * (A == Feed::byte4 ? 128 : 64) + at.tile * 16 + at.index;
                byte[0] = static_cast<uint8_t>(q);
                byte[kSet] = static_cast<uint8_t>(rest);
            }
        }
        sum = __reduce_add_sync(~0u, sum);
        sum_rest = __reduce_add_sync(~0u, sum_rest);
        if (lane == 0) {
            // weight = unit * (byte sum - 510 - fraction); the fraction is what centring at an
            // integer leaves (bias + 1534 unit, in units).
            constexpr float kFraction = -(-10.3828125f + 1534 * kUnit) / kUnit;
            const float s = finite ? step * (kUnit * kHadamard) : __int_as_float(0x7fffffff);
            const float rest = s * (1.0f / 254);
            scale->scale = s;
            scale->rest = rest;
            scale->shift =
                -kFraction * fmaf(s, static_cast<float>(sum), rest * static_cast<float>(sum_rest));
            scale->centre = -510 * sum;
            scale->centre_rest = -510 * sum_rest;
        }
    }
}

/// The B registers of one half of a k block.
template <Feed A>
__device__ __forceinline__ void load_b(const uint8_t* act, int half, int lane,
                                       uint32_t (&b)[A == Feed::byte8 ? 32 : 16]) {
    if constexpr (A == Feed::byte1 || A == Feed::half1) {
        constexpr int kVector = A == Feed::byte1 ? 128 : 64;  // bytes
        const int at = A == Feed::byte1 ? ((lane >> 2 & 1) * 4 + (lane & 3)) * 16 : (lane & 3) * 16;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint4 v =
                *reinterpret_cast<const uint4*>(act + half * 4 * kVector + i * kVector + at);
            b[4 * i] = v.x, b[4 * i + 1] = v.y, b[4 * i + 2] = v.z, b[4 * i + 3] = v.w;
        }
    } else if constexpr (A == Feed::half8) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint4 v =
                *reinterpret_cast<const uint4*>(act + half * 1024 + i * 512 + lane * 16);
            const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int j = 0; j < 8; ++j)
                b[8 * i + j] = __byte_perm(w[j >> 1], 0, j & 1 ? 0x3232 : 0x1010);
        }
    } else {
        constexpr int kSets = A == Feed::byte8 ? 2 : 1;
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
            const uint4 v =
                *reinterpret_cast<const uint4*>(act + (half * kSets + set) * 512 + lane * 16);
            const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int j = 0; j < 16; ++j)
                b[16 * set + j] = __byte_perm(w[j >> 2], 0, 0x1111 * (j & 3));
        }
    }
}

/// Sums of a lane: [tile of 16 columns][column g or g + 8][row of the lane].
template <Feed A, int kUnits>
struct Sums {
    float v[2 * kUnits][2][lane_rows(A)];
};

/// Adds two neighbouring units, 128 rows x 64 columns, times the activations of their k block.
/// `loaded` is called once all words are in registers.
template <int K, Feed A, int kUnits, typename Loaded>
__device__ __forceinline__ void multiply_units(const uint4* units, const uint8_t* act,
                                               const BlockScale* scale, int rows, uint32_t mul,
                                               uint32_t addend, int lane, Sums<A, kUnits>& sums,
                                               float (&shift)[lane_rows(A)], Loaded&& loaded) {
    using Acc = std::conditional_t<is_half(A), float, int>;
    constexpr int kRows = lane_rows(A), kSets = A == Feed::byte8 ? 2 : 1;
    const BlockScale* s[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const int row = A == Feed::byte1 || A == Feed::half1 ? 0 : (lane & 3) * kRows + r;
        s[r] = scale + min(row, rows - 1);
    }
    Acc c[2 * kUnits][kSets][4];
#pragma unroll
    for (int t = 0; t < 2 * kUnits; ++t)
#pragma unroll
        for (int set = 0; set < kSets; ++set)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if constexpr (is_half(A))
                    c[t][set][i] = 0;
                else if constexpr (A == Feed::byte8)
                    c[t][set][i] = set == 0 ? s[i & 1]->centre : s[i & 1]->centre_rest;
                else
                    c[t][set][i] = i & 1 ? s[0]->centre_rest : s[0]->centre;
            }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        uint32_t b[A == Feed::byte8 ? 32 : 16];
        load_b<A>(act, h, lane, b);
#pragma unroll
        for (int u = 0; u < kUnits; ++u) {
            uint32_t run[2][K + 1];
            load_runs<K>(units + u * unit_words(K) / 4, h, lane, run);
            if (h == 1 && u == kUnits - 1) loaded();
#pragma unroll
            for (int q = 0; q < 8; ++q)
#pragma unroll
                for (int t = 0; t < 2; ++t) {
                    uint32_t a[4];
                    run_fragment<K, is_half(A)>(run[t], q, mul, addend, a);
#pragma unroll
                    for (int set = 0; set < kSets; ++set)
                        mma(c[2 * u + t][set], a, b[16 * set + 2 * q], b[16 * set + 2 * q + 1]);
                }
        }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const float unit_scale = s[r]->scale, rest_scale = is_half(A) ? 0.0f : s[r]->rest;
        if constexpr (!is_half(A)) shift[r] += s[r]->shift;
#pragma unroll
        for (int t = 0; t < 2 * kUnits; ++t)
#pragma unroll
            for (int col = 0; col < 2; ++col) {
                float& sum = sums.v[t][col][r];
                if constexpr (is_half(A)) {
                    sum = fmaf(unit_scale, c[t][0][2 * col + r], sum);
                } else {
                    const int first = c[t][0][2 * col + r];
                    const int rest =
                        A == Feed::byte8 ? c[t][kSets - 1][2 * col + r] : c[t][0][2 * col + 1];
                    sum = fmaf(unit_scale, static_cast<float>(first), sum);
                    sum = fmaf(rest_scale, static_cast<float>(rest), sum);
                }
            }
    }
}

/// y of one row and group of 128 columns from its products; element 4 lane + i is v[i]. `svh`
/// holds the lane's four scales.
__device__ __forceinline__ void finish(const GemvMatrix& m, float (&v)[4], uint2 svh, int group,
                                       int row, int lane, bool add) {
    hadamard128_warp(v, lane);
    const int column = (group - m.first_group) * 128 + lane * 4;
    const float2 s01 = __half22float2(*reinterpret_cast<const __half2*>(&svh.x));
    const float2 s23 = __half22float2(*reinterpret_cast<const __half2*>(&svh.y));
    const float s[4] = {s01.x, s01.y, s23.x, s23.y};
    float* y = m.y + row * m.y_stride + column;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (column + i >= m.out) return;
        const float bias = m.bias.data ? m.bias[column + i] : 0.0f;
        const float value = fmaf(v[i], s[i] * 0.08838834764831845f, bias);
        y[i] = add ? y[i] + value : value;
    }
}

/// 1 / rms of a row, by the whole thread block.
__device__ __forceinline__ void find_rms(const GemvArgs& a, int row, float* inverse_rms) {
    __shared__ float sums[16];
    const int stride = static_cast<int>(blockDim.x) * 4;
    float sum = 0;
#pragma unroll 4
    for (int k = static_cast<int>(threadIdx.x) * 4; k < a.in; k += stride) {
        const float4 v = load_row(a.x + row * a.x_stride, k, a.in);
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = sum;
    __syncthreads();
    if (threadIdx.x < kWarp) {
        sum = warp_sum(threadIdx.x < blockDim.x / kWarp ? sums[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) *inverse_rms = rsqrtf(sum / static_cast<float>(a.in) + a.eps);
    }
    __syncthreads();
}

/// The activations of `count` k blocks from `k_block` on (round to the first), one slot each.
template <Feed A>
__device__ __forceinline__ void copy_ready(const GemvArgs& a, const uint8_t* from, int k_block,
                                           int count, int slot, uint8_t* act, BlockScale* scales) {
    constexpr int kActs = act_bytes(A) / 16;
    const int each = ready_bytes(A, a.rows) / 16;
    for (int i = static_cast<int>(threadIdx.x); i < count * each;
         i += static_cast<int>(blockDim.x)) {
        const int step = i / each, piece = i - step * each;
        int k = k_block + step, s = slot + step;
        if (k >= a.k_blocks) k -= a.k_blocks;
        if (s >= a.k_blocks) s -= a.k_blocks;
        const uint4 v = reinterpret_cast<const uint4*>(from)[k * each + piece];
        if (piece < kActs)
            reinterpret_cast<uint4*>(act + s * act_bytes(A))[piece] = v;
        else
            reinterpret_cast<uint4*>(scales + s * a.rows)[piece - kActs] = v;
    }
}

/// Thread block that block b of the list belongs to.
__device__ __forceinline__ int owner(int b, int blocks, int grid) {
    return static_cast<int>((static_cast<int64_t>(b + 1) * grid - 1) / blocks);
}

__device__ __forceinline__ uint4 peek(const uint4* p) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p)
                 : "memory");
    return v;
}
__device__ __forceinline__ uint32_t written(float f) {
    return ~(f == f ? __float_as_uint(f) : 0x7fffffffu);
}
/// Leaves a row's sums in the mail of a thread block.
__device__ __forceinline__ void post(uint32_t* mail, int cta, int row, int lane,
                                     const float (&v)[4]) {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                     reinterpret_cast<uint4*>(mail) + (cta * 8 + row) * 32 + lane),
                 "r"(written(v[0])), "r"(written(v[1])), "r"(written(v[2])), "r"(written(v[3]))
                 : "memory");
}
/// Adds the mail of thread blocks [begin, end) to v, in order, and empties it.
__device__ __forceinline__ void collect(uint32_t* mail, int begin, int end, int row, int lane,
                                        float (&v)[4]) {
    constexpr int kAtOnce = 8;
    for (int first = begin; first < end; first += kAtOnce) {
        uint4 got[kAtOnce];
        bool all = false;
        while (!all) {
            all = true;
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i)
                if (first + i < end)
                    got[i] = peek(reinterpret_cast<const uint4*>(mail) +
                                  ((first + i) * 8 + row) * 32 + lane);
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i)
                if (first + i < end) all = all && got[i].x && got[i].y && got[i].z && got[i].w;
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            if (first + i < end) {
                v[0] += __uint_as_float(~got[i].x), v[1] += __uint_as_float(~got[i].y);
                v[2] += __uint_as_float(~got[i].z), v[3] += __uint_as_float(~got[i].w);
                reinterpret_cast<uint4*>(mail)[((first + i) * 8 + row) * 32 + lane] =
                    make_uint4(0, 0, 0, 0);
            }
    }
}

}  // namespace gemv

template <int K, Feed A>
__global__ __launch_bounds__(gemv_warps(K) * kWarp,
                             1) void exl3_gemv(const __grid_constant__ GemvArgs a) {
#if __CUDA_ARCH__ >= 900
    constexpr int kLanes = gemv_lanes(K), kWarps = gemv_warps(K), kUnits = kGemvUnits,
                  kMostStages = gemv_most_stages(K);
    constexpr int kStageBytes = gemv_stage_bytes(K), kRows = lane_rows(A);
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ __align__(8) uint64_t bars[kWarps * kMostStages];
    __shared__ int arrived[kGemvMostPending];
    __shared__ volatile int
        added[kGemvMostPending];  // segments whose parts have been added, plus one
    const int grid = static_cast<int>(gridDim.x), me = static_cast<int>(blockIdx.x);
    const GemvShared at(K, act_bytes(A), a, grid);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    constexpr int kSides = kUnitsPerBlock / kUnits;  // warps that share rows and split columns
    const int side = warp % kSides, mine = warp / kSides;
    const int begin = static_cast<int>(static_cast<int64_t>(a.blocks) * me / grid);
    const int end = static_cast<int>(static_cast<int64_t>(a.blocks) * (me + 1) / grid);
    const int first_k = begin % a.k_blocks;

    uint8_t* ring_data = shared + warp * a.stages * kStageBytes;
    uint8_t* act = shared + at.act;
    BlockScale* scales = reinterpret_cast<BlockScale*>(shared + at.scales);
    float* parts = reinterpret_cast<float*>(shared + at.parts);
    const gemv::Ring ring{gemv::shared_address(ring_data),
                          gemv::shared_address(bars + warp * a.stages)};

    // The block that is asked for next; lane 0 alone follows it.
    int ahead = begin + mine, ahead_end = 0;
    const uint32_t* ahead_words = nullptr;
    const auto fetch = [&](int stage) {
        if (lane != 0 || ahead >= end) return;
        if (ahead >= ahead_end) {
            int i = 0;
            while (i + 1 < a.matrices && ahead >= a.matrix[i + 1].first_group * a.k_blocks) ++i;
            ahead_end = i + 1 < a.matrices ? a.matrix[i + 1].first_group * a.k_blocks : end;
            ahead_words =
                a.matrix[i].words + (side * kUnits - static_cast<int64_t>(a.matrix[i].first_group) *
                                                         a.k_blocks * kUnitsPerBlock) *
                                        unit_words(K);
        }
        ring.fetch(stage,
                   ahead_words + static_cast<int64_t>(ahead) * kUnitsPerBlock * unit_words(K),
                   kStageBytes);
        ahead += kLanes;
    };
    if (lane == 0) {
        ring.init(a.stages);
        // Weights never change: the first are asked for before the kernel that makes x has ended.
        // No more of them, or x would queue behind 17 MB of weights.
        fetch(0);
    }
    if (threadIdx.x < kGemvMostPending) arrived[threadIdx.x] = 0, added[threadIdx.x] = 0;
    __syncwarp();
    // What a warp prepares first: its scales are weights too.
    gemv::Raw first_raw{};
    if (!a.ready && begin + warp < end)
        gemv::load_weights(a, gemv::matrix_of(a, begin / a.k_blocks), (begin + warp) % a.k_blocks,
                           lane, first_raw);
    let_successor_start();
    wait_for_predecessor();

    __shared__ float inverse_rms[1];
    if (a.before == GemvArgs::Before::norm && !a.ready) gemv::find_rms(a, 0, inverse_rms);

    int stage = 0, block = begin + mine, turn = 0, prepared = begin;
    uint32_t parity = 0;
    int slot = 0;  // of the activations of `block`
    for (int b = begin; b < end; ++turn) {
        const int group = b / a.k_blocks, group_begin = group * a.k_blocks;
        const int stop = min(end, group_begin + a.k_blocks);
        const GemvMatrix& m = gemv::matrix_of(a, group);
        if (b >= prepared) {
            // Each matrix has input scales of its own, hence activations of its own.
            const GemvMatrix* next = &m + 1;
            const bool last = next == a.matrix + a.matrices;
            const int until = last ? end : min(end, next->first_group * a.k_blocks);
            const int steps = min(until - b, a.k_blocks);
            if (b != begin) __syncthreads();
            if (a.ready) {
                const int k_block = b - group_begin, slot_k = k_block - first_k;
                gemv::copy_ready<A>(a,
                                    a.ready + static_cast<int64_t>(&m - a.matrix) * a.k_blocks *
                                                  ready_bytes(A, a.rows),
                                    k_block, steps, slot_k < 0 ? slot_k + a.k_blocks : slot_k, act,
                                    scales);
            } else {
                const auto k_block_of = [&](int step) {
                    const int k_block = b - group_begin + step;
                    return k_block >= a.k_blocks ? k_block - a.k_blocks : k_block;
                };
                // One row. Loads run one step ahead of the arithmetic.
                gemv::Raw raw = first_raw;
                if (warp < steps) {
                    if (b != begin) gemv::load_weights(a, m, k_block_of(warp), lane, raw);
                    gemv::load_x(a, k_block_of(warp), 0, lane, raw);
                }
                for (int step = warp; step < steps; step += kWarps) {
                    const gemv::Raw now = raw;
                    if (step + kWarps < steps) {
                        gemv::load_weights(a, m, k_block_of(step + kWarps), lane, raw);
                        gemv::load_x(a, k_block_of(step + kWarps), 0, lane, raw);
                    }
                    int s = k_block_of(step) - first_k;
                    if (s < 0) s += a.k_blocks;
                    gemv::prepare<A>(a, now, 0,
                                     a.before == GemvArgs::Before::norm ? inverse_rms[0] : 1.0f,
                                     act + s * act_bytes(A), scales + s, lane);
                }
            }
            if (b == begin)
                for (int s = 1; s < a.stages; ++s) fetch(s);
            prepared = until;
            __syncthreads();
        }
        gemv::Sums<A, kUnits> sums = {};
        float shift[kRows] = {};
        if (block < stop) {
            slot = block - group_begin - first_k;
            if (slot < 0) slot += a.k_blocks;
        }
        for (; block < stop; block += kLanes) {
            ring.wait(stage, parity);
            gemv::multiply_units<K, A, kUnits>(
                reinterpret_cast<const uint4*>(ring_data + stage * kStageBytes),
                act + slot * act_bytes(A), scales + slot * a.rows, a.rows, a.multiplier, a.addend,
                lane, sums, shift, [&] {
                    __syncwarp();
                    fetch(stage);
                });
            if (++stage == a.stages) stage = 0, parity ^= 1;
            slot += kLanes;
            if (slot >= a.k_blocks) slot -= a.k_blocks;
        }
        const int buffer = turn % a.pending;
        float* part = parts + buffer * kLanes * a.rows * 128;
        if (a.rows == 1 && turn >= a.pending)
            while (added[buffer] <= turn - a.pending) {
            }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int row =
                A == Feed::byte1 || A == Feed::half1 ? (lane & 3) : (lane & 3) * kRows + r;
            if (row < a.rows)
#pragma unroll
                for (int t = 0; t < 2 * kUnits; ++t)
#pragma unroll
                    for (int col = 0; col < 2; ++col)
                        part[(mine * a.rows + row) * 128 + side * kUnits * 32 + t * 16 + col * 8 +
                             (lane >> 2)] = sums.v[t][col][r] + shift[r];
        }
        const bool starts = b == group_begin, ends = stop == group_begin + a.k_blocks;
        // Adds the parts of a row; `read` is called once the parts are in registers.
        const auto add_row = [&](int row, auto&& read) {
            const uint2 svh =
                *reinterpret_cast<const uint2*>(m.svh + (group - m.first_group) * 128 + lane * 4);
            float v[4] = {};
#pragma unroll
            for (int l = 0; l < kLanes; ++l) {
                const float4 p =
                    reinterpret_cast<const float4*>(part + (l * a.rows + row) * 128)[lane];
                v[0] += p.x, v[1] += p.y, v[2] += p.z, v[3] += p.w;
            }
            read();
            if (!starts) return gemv::post(a.mail, me, row, lane, v);
            if (!ends)
                gemv::collect(a.mail, me + 1,
                              gemv::owner(group_begin + a.k_blocks - 1, a.blocks, grid) + 1, row,
                              lane, v);
            gemv::finish(m, v, svh, group, row, lane, a.add);
        };
        if (a.rows > 1) {
            // One warp per row; all wait for all.
            __syncthreads();
            if (warp < a.rows)
                add_row(warp, [&] {
                    if (a.pending == 1) __syncthreads();
                });
            else if (a.pending == 1)
                __syncthreads();
        } else {
            // The last warp to arrive does it.
            __threadfence_block();
            int before = 0;
            if (lane == 0) before = atomicAdd(&arrived[buffer], 1);
            if (shfl(before, 0) == kWarps - 1) {
                __threadfence_block();
                add_row(0, [] {});
                __syncwarp();
                if (lane == 0) {
                    arrived[buffer] = 0;
                    __threadfence_block();
                    added[buffer] = turn + 1;
                }
            }
        }
        b = stop;
    }
#endif
}

/// Makes the activations of one row and matrix for kReadyBlocks k blocks.
template <Feed A>
__global__ __launch_bounds__(kReadyBlocks* kWarp) void exl3_ready(
    const __grid_constant__ GemvArgs a) {
    __shared__ float inverse_rms[1];
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int row = static_cast<int>(blockIdx.x), matrix = static_cast<int>(blockIdx.y);
    const int k_block = static_cast<int>(blockIdx.z) * kReadyBlocks + warp;
    const bool real = k_block < a.k_blocks;
    gemv::Raw raw{};
    if (real) gemv::load_weights(a, a.matrix[matrix], k_block, lane, raw);
    let_successor_start();
    wait_for_predecessor();
    if (a.before == GemvArgs::Before::norm) gemv::find_rms(a, row, inverse_rms);
    if (!real) return;
    gemv::load_x(a, k_block, row, lane, raw);
    uint8_t* to = const_cast<uint8_t*>(a.ready) +
                  static_cast<int64_t>(matrix * a.k_blocks + k_block) * ready_bytes(A, a.rows);
    gemv::prepare<A>(a, raw, row, a.before == GemvArgs::Before::norm ? inverse_rms[0] : 1.0f, to,
                     reinterpret_cast<BlockScale*>(to + act_bytes(A)) + row, lane);
}

template <int K>
GemvKernel pick_gemv(Feed feed) {
    switch (feed) {
        case Feed::byte1: return exl3_gemv<K, Feed::byte1>;
        case Feed::byte4: return exl3_gemv<K, Feed::byte4>;
        case Feed::byte8: return exl3_gemv<K, Feed::byte8>;
        case Feed::half1: return exl3_gemv<K, Feed::half1>;
        case Feed::half8: return exl3_gemv<K, Feed::half8>;
    }
    return nullptr;
}

#else
template <int K>
GemvKernel pick_gemv(Feed) {
    return nullptr;
}
#endif
}  // namespace exl3::gpu
