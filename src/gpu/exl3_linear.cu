// exl3_linear and exl3_fused: which kernel runs, and the steps around the one for many rows.
#include <algorithm>
#include <array>
#include <span>

#include "gpu/exl3_gemv.h"
#include "gpu/exl3_matmul.cuh"
#include "gpu/launch.h"
#include "ops/exl3.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3::gpu {
namespace {

constexpr int64_t kFewRows = 8;  ///< what the decode kernel takes

/// Limits of the current GPU.
struct Limits {
    int major = 0;
    int shared = 0;  ///< bytes of dynamic shared memory that a thread block may ask for
};
Limits limits_of_current() {
    cudaDeviceProp p{};
    int device = 0;
    require(cudaGetDevice(&device), "current GPU");
    require(cudaGetDeviceProperties(&p, device), "properties of the GPU");
    return {p.major, static_cast<int>(p.sharedMemPerBlockOptin)};
}
const Limits& limits() {
    // Every GPU of a machine is taken to be as capable as the first one used.
    static const Limits known = limits_of_current();
    return known;
}

GemvKernel decode_kernel_for(int bits, Feed feed) {
    constexpr std::array kByBits = {gemv_kernel<1>, gemv_kernel<2>, gemv_kernel<3>, gemv_kernel<4>,
                                    gemv_kernel<5>, gemv_kernel<6>, gemv_kernel<7>, gemv_kernel<8>};
    return kByBits[static_cast<size_t>(bits - 1)](feed);
}
MatmulKernel matmul_kernel_for(int bits, bool pairs, int tile) {
    constexpr std::array kByBits = {matmul_kernel<1>, matmul_kernel<2>, matmul_kernel<3>,
                                    matmul_kernel<4>, matmul_kernel<5>, matmul_kernel<6>,
                                    matmul_kernel<7>, matmul_kernel<8>};
    return kByBits[static_cast<size_t>(bits - 1)](pairs, tile);
}

uint32_t addend_of(Codebook c) {
    return c.kind == CodebookKind::three_inst ? kThreeInstAddend : 0;
}
Feed feed_of(Codebook c, int rows) {
    if (c.kind != CodebookKind::mul1) return rows == 1 ? Feed::half1 : Feed::half8;
    return rows == 1 ? Feed::byte1 : rows <= 4 ? Feed::byte4 : Feed::byte8;
}

/// A fused call's matrices [first, first + count), which agree in bits and codebook.
struct Group {
    int first = 0, count = 0;
};

GemvArgs gemv_args(const Exl3FusedArgs& a, Group group) {
    const Exl3FusedMatrix& head = a.matrices[static_cast<size_t>(group.first)];
    GemvArgs g;
    g.x = a.x.as<float>();
    g.x_stride = a.x.row_stride;
    g.in = static_cast<int>(a.x.shape[1]);
    g.k_blocks = static_cast<int>(head.packed.shape[0] * kTile / kHadamard);
    g.multiplier = head.codebook.multiplier;
    g.addend = addend_of(head.codebook);
    g.before = a.norm    ? GemvArgs::Before::norm
               : a.gated ? GemvArgs::Before::gate
                         : GemvArgs::Before::nothing;
    g.norm_weight = floats(a.norm_weight);
    g.norm_weight_bias = a.norm_weight ? a.norm_weight_bias : 0;
    g.eps = a.eps;
    g.act = a.act;
    g.up = a.up.as<float>();
    g.up_stride = a.up.row_stride;
    g.add = a.add;
    g.matrices = group.count;
    int groups = 0;
    for (int i = 0; i < group.count; ++i) {
        const Exl3FusedMatrix& m = a.matrices[static_cast<size_t>(group.first + i)];
        g.matrix[i] = {.words = m.packed.as<uint32_t>(),
                       .suh = m.suh.as<__half>(),
                       .svh = m.svh.as<__half>(),
                       .bias = floats(m.bias),
                       .out = static_cast<int>(m.y.shape[1]),
                       .first_group = groups,
                       .y = m.y.as<float>(),
                       .y_stride = m.y.row_stride};
        groups += static_cast<int>(m.packed.shape[1] * kTile / kHadamard);
    }
    g.blocks = groups * g.k_blocks;
    return g;
}

void skip_rows(GemvArgs& g, int64_t rows) {
    g.x += rows * g.x_stride;
    if (g.up) g.up += rows * g.up_stride;
    for (int i = 0; i < g.matrices; ++i) g.matrix[i].y += rows * g.matrix[i].y_stride;
}

/// Dynamic shared memory that the decode kernel may use; what it holds besides is below 2 KB.
int shared_limit() {
    return limits().shared - 2048;
}
int grid_of(const GpuStream& s, const GemvArgs& g) {
    return std::min(s.multiprocessors(), g.blocks);
}
/// Whether at least a single row fits: matrices of very many rows hold too many activations.
bool fits(const GpuStream& s, const Exl3FusedArgs& a, Group group) {
    const Exl3FusedMatrix& head = a.matrices[static_cast<size_t>(group.first)];
    GemvArgs g = gemv_args(a, group);
    g.rows = 1;
    return fit_gemv(g, head.bits, act_bytes(feed_of(head.codebook, 1)), grid_of(s, g),
                    shared_limit()) > 0;
}

/// Runs a group of at most kFewRows rows, in as many launches as shared memory asks for.
void run_gemv(GpuStream& s, const Exl3FusedArgs& a, Group group) {
    const Exl3FusedMatrix& head = a.matrices[static_cast<size_t>(group.first)];
    GemvArgs g = gemv_args(a, group);
    const int grid = grid_of(s, g), limit = shared_limit();
    g.mail = s.zeros(gemv_mail(grid));
    for (int64_t left = a.x.shape[0]; left > 0;) {
        int bytes = 0;
        for (g.rows = static_cast<int>(left); g.rows > 0; --g.rows) {
            bytes = fit_gemv(g, head.bits, act_bytes(feed_of(head.codebook, g.rows)), grid, limit);
            if (bytes) break;
        }
        EXL3_CHECK(bytes);
        const Feed feed = feed_of(head.codebook, g.rows);
        const auto scope = s.workspace().scope();
        g.ready = nullptr;
        if (g.rows > 1) {
            const int64_t ready = int64_t{g.matrices} * g.k_blocks * ready_bytes(feed, g.rows);
            g.ready = s.workspace().take(DType::u8, {ready}).as<uint8_t>();
            launch(s, "exl3_linear",
                   {dim3(static_cast<unsigned>(g.rows), static_cast<unsigned>(g.matrices),
                         blocks_for(g.k_blocks, kReadyBlocks)),
                    dim3(kReadyBlocks * kWarp)},
                   ready_kernel(feed), g);
        }
        const GemvKernel kernel = decode_kernel_for(head.bits, feed);
        allow_shared(kernel, static_cast<size_t>(limit));
        launch(
            s, "exl3_linear",
            {dim3(static_cast<unsigned>(grid)),
             dim3(static_cast<unsigned>(gemv_lanes(head.bits)) * 64), static_cast<size_t>(bytes)},
            kernel, g);
        skip_rows(g, g.rows);
        left -= g.rows;
    }
}

constexpr int kRotateThreads = 256;

// (x * suh) H of a row as f16, in matmul order, over a power of two that keeps it finite: no value
// of a transformed run exceeds the run's length.
__global__ void rotate(const float* x, int64_t x_stride, int in, const __half* suh, __half* xr,
                       float* scale, int k_blocks) {
    __shared__ float most[kRotateThreads / kWarp];
    wait_for_predecessor();
    let_successor_start();
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp, warps = kRotateThreads / kWarp;
    const int64_t row = blockIdx.x;
    const auto value = [&](int k) {
        return k < in ? x[row * x_stride + k] * __half2float(suh[k]) : 0.0f;
    };
    float length = 0;
    for (int b = warp; b < k_blocks; b += warps) {
        float sum = 0;
        for (int i = 0; i < 4; ++i) {
            const float v = value(b * kHadamard + lane * 4 + i);
            sum = fmaf(v, v, sum);
        }
        length = fmaxf(length, warp_sum(sum));
    }
    if (lane == 0) most[warp] = length;
    __syncthreads();
    for (int w = 0; w < warps; ++w) length = fmaxf(length, most[w]);
    // 2^14 and the rounding of the transform stay below the largest f16; hadamard128_warp is not
    // scaled, so its results are up to sqrt(128) times the length.
    length = sqrtf(length) * 11.313709f;
    int exponent = 0;
    if (length > 0 && length < 3e38f) frexpf(length, &exponent);
    const float down = exp2f(static_cast<float>(14 - exponent));
    for (int b = warp; b < k_blocks; b += warps) {
        float v[4];
        for (int i = 0; i < 4; ++i) v[i] = value(b * kHadamard + lane * 4 + i) * down;
        hadamard128_warp(v, lane);
        // Matmul order: channels 2 l, 2 l + 1, 2 l + 8, 2 l + 9 of each sixteen stand together.
        const int in16 = (lane & 3) * 4, l = (in16 & 7) / 2;
        __half2* to = reinterpret_cast<__half2*>(xr + (row * k_blocks + b) * kHadamard +
                                                 (lane >> 2) * 16 + (in16 >> 3) * 2);
        to[2 * l] = __floats2half2_rn(v[0], v[1]);
        to[2 * l + 2] = __floats2half2_rn(v[2], v[3]);
    }
    if (threadIdx.x == 0) scale[row] = exp2f(static_cast<float>(exponent - 14));
}

// Adds the slices of k in order and finishes; one warp per row and group.
__global__ void add_slices(const __grid_constant__ MatmulArgs a) {
    wait_for_predecessor();
    let_successor_start();
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int64_t at =
        static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
    if (at >= static_cast<int64_t>(a.rows) * a.groups) return;
    const int row = static_cast<int>(at / a.groups), group = static_cast<int>(at % a.groups);
    float v[4] = {};
    for (int slice = 0; slice < a.slices; ++slice) {
        const float4 p = reinterpret_cast<const float4*>(
            a.products)[((static_cast<int64_t>(slice) * a.rows + row) * a.groups + group) * kWarp +
                        lane];
        v[0] += p.x, v[1] += p.y, v[2] += p.z, v[3] += p.w;
    }
    matmul::finish(a, v, group, row, lane);
}

/// Slices of k so that a launch fills the GPU. Up to 64 rows they depend on the matrix alone, so
/// that a row's result does not depend on the others.
int slices_for(int multiprocessors, int groups, int row_tiles, int k_blocks) {
    const int blocks = groups * row_tiles;
    return std::clamp(2 * multiprocessors / blocks, 1, std::clamp(k_blocks / 4, 1, 8));
}

void run_matmul(GpuStream& s, const Exl3LinearArgs& a) {
    const int rows = static_cast<int>(a.x.shape[0]);
    const int64_t k = a.packed.shape[0] * kTile, n = a.packed.shape[1] * kTile;
    const auto scope = s.workspace().scope();
    const View xr = s.workspace().take(DType::f16, {rows, k});
    const View scale = s.workspace().take(DType::f32, {rows});
    MatmulArgs m{.words = a.packed.as<uint32_t>(),
                 .xr = xr.as<__half>(),
                 .scale = scale.as<float>(),
                 .rows = rows,
                 .k_blocks = static_cast<int>(k / kHadamard),
                 .groups = static_cast<int>(n / kHadamard),
                 .multiplier = a.codebook.multiplier,
                 .addend = addend_of(a.codebook),
                 .svh = a.svh.as<__half>(),
                 .bias = floats(a.bias),
                 .y = a.y.as<float>(),
                 .y_stride = a.y.row_stride,
                 .out = static_cast<int>(a.y.shape[1])};
    const int tile = rows <= kMatmulTiles[0]   ? kMatmulTiles[0]
                     : rows <= kMatmulTiles[1] ? kMatmulTiles[1]
                                               : kMatmulTiles[2];
    const int row_tiles = (rows + tile - 1) / tile;
    m.slices = slices_for(s.multiprocessors(), m.groups, row_tiles, m.k_blocks);
    if (m.slices > 1) m.products = s.workspace().take(DType::f32, {m.slices, rows, n}).as<float>();
    launch(s, "exl3_linear", {dim3(static_cast<unsigned>(rows)), dim3(kRotateThreads)}, rotate,
           a.x.as<float>(), a.x.row_stride, static_cast<int>(a.x.shape[1]), a.suh.as<__half>(),
           xr.as<__half>(), scale.as<float>(), m.k_blocks);
    const MatmulKernel kernel =
        matmul_kernel_for(a.bits, a.codebook.kind != CodebookKind::mul1, tile);
    const size_t shared = matmul_shared(a.bits, tile);
    allow_shared(kernel, shared);
    launch(s, "exl3_linear",
           {dim3(static_cast<unsigned>(row_tiles), static_cast<unsigned>(m.groups),
                 static_cast<unsigned>(m.slices)),
            dim3(kMatmulThreads), shared},
           kernel, m);
    if (m.slices > 1)
        launch(s, "exl3_linear", {dim3(blocks_for(int64_t{rows} * m.groups, 8)), dim3(256)},
               add_slices, m);
}

// The decode kernel is written for sm_90 and what follows it.
bool few(const ConstView& x) {
#if defined(__HIP_PLATFORM_AMD__)
    return false;
#else
    return x.shape[0] <= kFewRows && limits().major >= 9;
#endif
}

}  // namespace

void exl3_linear(Stream& s, const Exl3LinearArgs& a) {
    if (a.x.shape[0] == 0) return;
    GpuStream& g = gpu_stream(s);
    Exl3FusedArgs fused{.x = a.x};
    fused.matrices[0] = {.packed = a.packed,
                         .suh = a.suh,
                         .svh = a.svh,
                         .bias = a.bias,
                         .y = a.y,
                         .codebook = a.codebook,
                         .bits = a.bits};
    if (!few(a.x) || !fits(g, fused, {0, 1})) return run_matmul(g, a);
    run_gemv(g, fused, {0, 1});
}

void exl3_fused(Stream& s, const Exl3FusedArgs& a) {
    if (a.x.shape[0] == 0) return;
    GpuStream& g = gpu_stream(s);
    std::array<Group, 4> groups;
    int found = 0;
    for (int first = 0, count = a.count(); first < count;) {
        const Exl3FusedMatrix& head = a.matrices[static_cast<size_t>(first)];
        int next = first + 1;
        while (next < count && a.matrices[static_cast<size_t>(next)].bits == head.bits &&
               a.matrices[static_cast<size_t>(next)].codebook == head.codebook)
            ++next;
        groups[static_cast<size_t>(found++)] = {first, next - first};
        first = next;
    }
    const std::span all(groups.data(), static_cast<size_t>(found));
    const auto fit = [&](Group group) { return fits(g, a, group); };
    if (!few(a.x) || !std::all_of(all.begin(), all.end(), fit))
        return ops::exl3_fused_in_parts(s, a);
    for (const Group group : all) run_gemv(g, a, group);
}

}  // namespace exl3::gpu
