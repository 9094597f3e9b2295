// Attention of a few rows per sequence: as fast as keys and values can be read.
//
// The past is cut at page boundaries. A block takes one page of one key head and up to 8 queries
// (rows times the heads that share the key head); its warps take 64 tokens each, 16 at a time,
// straight from memory into matrix fragments. A fragment has 16 rows: row i holds a query rounded
// to f16, row i + 8 what rounding left over, so products are those of 22-bit queries; weights of
// the values are split alike. The last block of a query's pages adds their results up, page by
// page, so that a result depends on its own sequence alone.
#include "gpu/attention.cuh"

namespace exl3::gpu {
namespace {

constexpr int kWarps = 4, kQueries = 8, kStep = 16, kWarpTokens = kPageTokens / kWarps;

/// Results of parts of a sequence: (queries of 8, kv_heads, pages) of 8 rows of sums, then maxima
/// and totals.
struct Parts {
    float* sums = nullptr;        ///< (slots, 8, dim)
    float2* weights = nullptr;    ///< (slots, 8): largest logit, total
    uint32_t* arrived = nullptr;  ///< (queries of 8, kv_heads)
    int pages = 0;
};

/// Eight queries of one sequence.
struct Queries {
    int sequence = 0, first = 0, count = 0;  ///< of rows * group queries, row by row
    int rows = 0, kv_len = 0, group = 0;
    __device__ int row(int i) const { return (first + i) / group; }
    __device__ int head(int i, int kv_head) const { return kv_head * group + (first + i) % group; }
    __device__ int position(int i) const { return kv_len - rows + row(i); }
};

/// A warp's state: 8 queries against the tokens so far.
template <int kDim>
struct Sums {
    float value[kDim / 64][8][4];
    float top, total;  // of query lane / 4
    __device__ void clear() {
        for (auto& part : value)
            for (auto& tile : part)
                for (float& v : tile) v = 0;
        top = -INFINITY;
        total = 0;
    }
};

// Channels that lane t of a quad holds: 8 at a time, so that memory is read 16 bytes at a time. The
// order of channels within a product is free as long as queries and keys agree.
template <int kDim>
__device__ void load_queries(const AttentionKernelArgs& a, const Queries& u, int kv_head, int lane,
                             uint32_t (&fragment)[kDim / 16][4]) {
    const int i = lane / 4, t = lane % 4;
    const bool real = i < u.count;
    const int64_t row = real ? a.seq.q_start[u.sequence] + u.row(i) : 0;
    const float* q = a.q + (row * a.heads + (real ? u.head(i, kv_head) : 0)) * a.q_stride;
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
        const int channel = k / 2 * 32 + t * 8 + k % 2 * 4;
        const float4 four =
            real && channel < a.dim ? *reinterpret_cast<const float4*>(q + channel) : float4{};
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            const float v[2] = {pair ? four.z : four.x, pair ? four.w : four.y};
            const __half h0 = __float2half_rn(v[0]), h1 = __float2half_rn(v[1]);
            fragment[k][2 * pair] = pack_halves(v[0], v[1]);
            fragment[k][2 * pair + 1] =
                pack_halves(v[0] - __half2float(h0), v[1] - __half2float(h1));
        }
    }
}

template <int kDim, bool kQuantized>
__device__ void take_tokens(const AttentionKernelArgs& a, const Queries& u, int kv_head, int lane,
                            const uint32_t (&queries)[kDim / 16][4], int token, int64_t slot,
                            Sums<kDim>& sums) {
    const int g = lane / 4, t = lane % 4;
    const auto load = [&](const CachePlane& plane, int offset, int channel) {
        if (token + offset >= u.kv_len || channel >= a.dim) return uint4{};
        return load_stored<kQuantized>(plane, (slot + offset) * a.kv_heads + kv_head, a.dim,
                                       channel);
    };
    uint4 keys[2][kDim / 32], values[kDim / 64][4];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int k = 0; k < kDim / 32; ++k) keys[n][k] = load(a.k, n * 8 + g, k * 32 + t * 8);
#pragma unroll
    for (int n = 0; n < kDim / 64; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            values[n][j] = load(a.v, 2 * t + j % 2 + j / 2 * 8, n * 64 + g * 8);

    float score[2][4] = {};
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int k = 0; k < kDim / 32; ++k) {
            const uint4 key = expand<kQuantized>(a.k, keys[n][k], k * 32 + t * 8);
            mma_f16(score[n], queries[2 * k], key.x, key.y);
            mma_f16(score[n], queries[2 * k + 1], key.z, key.w);
        }

    const int position = g < u.count ? u.position(g) : -1;
    const int first = a.first_visible(position);
    float logit[2][2], top = sums.top;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int at = token + n * 8 + 2 * t + j;
            logit[n][j] =
                at <= position && at >= first ? a.logit(score[n][j] + score[n][2 + j]) : -INFINITY;
            top = fmaxf(top, logit[n][j]);
        }
    top = fmaxf(top, shfl_xor(top, 1));
    top = fmaxf(top, shfl_xor(top, 2));
    const float keep = weight_of(sums.top, top);
    sums.top = top;
    uint32_t weights[4];
    float total = 0;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        const float p0 = weight_of(logit[n][0], top), p1 = weight_of(logit[n][1], top);
        total += p0 + p1;
        const __half h0 = __float2half_rn(p0), h1 = __float2half_rn(p1);
        weights[2 * n] = pack_halves(p0, p1);
        weights[2 * n + 1] = pack_halves(p0 - __half2float(h0), p1 - __half2float(h1));
    }
    total += shfl_xor(total, 1);
    total += shfl_xor(total, 2);
    sums.total = sums.total * keep + total;
#pragma unroll
    for (int n = 0; n < kDim / 64; ++n) {
#pragma unroll
        for (uint4& v : values[n]) v = expand<kQuantized>(a.v, v, n * 64 + g * 8);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const auto word = [&](int i) {
                const uint4& v = values[n][i];
                return j / 2 == 0 ? v.x : j / 2 == 1 ? v.y : j / 2 == 2 ? v.z : v.w;
            };
            const unsigned pick = j % 2 ? 0x7632 : 0x5410;
            float(&o)[4] = sums.value[n][j];
            for (float& v : o) v *= keep;
            mma_f16(o, weights, __byte_perm(word(0), word(1), pick),
                    __byte_perm(word(2), word(3), pick));
        }
    }
}

/// What a block's warps found, added up in the order of the warps.
template <int kDim>
struct Joined {
    float value[kWarps][kQueries][kDim + 4];
    float top[kWarps][kQueries], total[kWarps][kQueries];
    bool last;
};

template <int kDim>
__device__ void publish(const Sums<kDim>& sums, Joined<kDim>& joined, int warp, int lane) {
    const int g = lane / 4, t = lane % 4;
    for (int n = 0; n < kDim / 64; ++n)
        for (int j = 0; j < 8; ++j) {
            const float(&o)[4] = sums.value[n][j];
            joined.value[warp][g][n * 64 + 16 * t + j] = o[0] + o[2];
            joined.value[warp][g][n * 64 + 16 * t + 8 + j] = o[1] + o[3];
        }
    if (t == 0) {
        joined.top[warp][g] = sums.top;
        joined.total[warp][g] = sums.total;
    }
}

/// A running weighted sum.
struct Running {
    float top = -INFINITY, total = 0, value = 0;
    __device__ void add(float other_top, float other_total, float other_value) {
        const float to = fmaxf(top, other_top);
        const float mine = weight_of(top, to), theirs = weight_of(other_top, to);
        value = value * mine + other_value * theirs;
        total = total * mine + other_total * theirs;
        top = to;
    }
};

__device__ void finish(const AttentionKernelArgs& a, const Queries& u, int kv_head, int i,
                       int channel, Running r) {
    const int head = u.head(i, kv_head);
    r.add(a.sink(head), 1, 0);
    const int64_t row = a.seq.q_start[u.sequence] + u.row(i);
    a.y[(row * a.heads + head) * a.y_stride + channel] = r.value / r.total;
}

/// The pages that any of these queries sees.
struct PageRange {
    int first, count;
    __device__ PageRange(const AttentionKernelArgs& a, const Queries& u)
        : first(a.first_visible(u.position(0)) / kPageTokens),
          count(u.position(u.count - 1) / kPageTokens - first + 1) {}
};

// Adds up the pages of some queries. Pages go to lanes, and follow each other, by their place in
// the sequence: pages that a query does not see add zeros and change nothing.
template <int kDim>
__device__ void join_parts(const AttentionKernelArgs& a, const Parts& parts, const Queries& u,
                           int kv_head, const PageRange& pages, int64_t first_slot,
                           Joined<kDim>& joined) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int end = pages.first + pages.count;
    const auto at = [&](int page, int i) {
        return (first_slot + page - pages.first) * kQueries + i;
    };
    for (int i = warp; i < u.count; i += kWarps) {
        float top = -INFINITY, total = 0;
        for (int p = pages.first / kWarp * kWarp + lane; p < end; p += kWarp)
            if (p >= pages.first) top = fmaxf(top, __ldcg(parts.weights + at(p, i)).x);
        top = warp_max(top);
        for (int p = pages.first / kWarp * kWarp + lane; p < end; p += kWarp)
            if (p >= pages.first) {
                const float2 w = __ldcg(parts.weights + at(p, i));
                total += weight_of(w.x, top) * w.y;
            }
        total = warp_sum(total);
        if (lane == 0) {
            joined.top[0][i] = top;
            joined.total[0][i] = total;
        }
    }
    __syncthreads();
    const int fours = a.dim / 4;
    for (int e = threadIdx.x; e < u.count * fours; e += blockDim.x) {
        const int i = e / fours, c = e % fours * 4;
        const float top = joined.top[0][i];
        float4 sum{};
        // Enough loads under way to hide how far the second-level cache is.
#pragma unroll 8
        for (int p = pages.first; p < end; ++p) {
            const float f = weight_of(__ldcg(parts.weights + at(p, i)).x, top);
            const float4 v =
                __ldcg(reinterpret_cast<const float4*>(parts.sums + at(p, i) * a.dim + c));
            sum = {fmaf(f, v.x, sum.x), fmaf(f, v.y, sum.y), fmaf(f, v.z, sum.z),
                   fmaf(f, v.w, sum.w)};
        }
        const float values[4] = {sum.x, sum.y, sum.z, sum.w};
        for (int j = 0; j < 4; ++j)
            finish(a, u, kv_head, i, c + j, {top, joined.total[0][i], values[j]});
    }
}

/// Consecutive pages of some queries and one key head.
struct Run {
    int queries_index, kv_head, first, count;  ///< first: from pages.first on
};

template <int kDim, bool kQuantized>
__device__ void attend(const AttentionKernelArgs& a, const Parts& parts, const Queries& u,
                       const PageRange& pages, const Run& run, Joined<kDim> (&joined)[2]) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    uint32_t queries[kDim / 16][4];
    load_queries<kDim>(a, u, run.kv_head, lane, queries);
    const int low = a.first_visible(u.position(0)), high = u.position(u.count - 1);
    const int of = run.queries_index * a.kv_heads + run.kv_head;
    const int64_t first_slot = static_cast<int64_t>(of) * parts.pages;
    for (int n = run.first; n < run.first + run.count; ++n) {
        const int begin = (pages.first + n) * kPageTokens + warp * kWarpTokens;
        const int64_t slot = a.seq.slot(u.sequence, begin);
        Sums<kDim> sums;
        sums.clear();
        for (int t = 0; t < kWarpTokens; t += kStep)
            if (begin + t <= high && begin + t + kStep > low)
                take_tokens<kDim, kQuantized>(a, u, run.kv_head, lane, queries, begin + t, slot + t,
                                              sums);
        // Two rooms in turn: nobody writes to one before all have left it.
        Joined<kDim>& room = joined[n % 2];
        publish<kDim>(sums, room, warp, lane);
        __syncthreads();
        for (int e = threadIdx.x; e < u.count * a.dim; e += blockDim.x) {
            const int i = e / a.dim, c = e % a.dim;
            Running r;
            for (int w = 0; w < kWarps; ++w)
                r.add(room.top[w][i], room.total[w][i], room.value[w][i][c]);
            if (pages.count == 1) {
                finish(a, u, run.kv_head, i, c, r);
                continue;
            }
            const int64_t part = (first_slot + n) * kQueries + i;
            parts.sums[part * a.dim + c] = r.value;
            if (c == 0) parts.weights[part] = {r.top, r.total};
        }
    }
    if (pages.count > 1) {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            const auto count = static_cast<uint32_t>(run.count);
            joined[0].last =
                atomicAdd(parts.arrived + of, count) + count == static_cast<uint32_t>(pages.count);
            if (joined[0].last) parts.arrived[of] = 0;
            __threadfence();
        }
        __syncthreads();
        if (joined[0].last)
            join_parts<kDim>(a, parts, u, run.kv_head, pages, first_slot, joined[0]);
    }
    __syncthreads();  // before the next run uses the rooms
}

/// Calls f(queries, index) for every 8 queries of the sequences with few rows, until it returns
/// false.
template <typename F>
__device__ void each_queries(const AttentionKernelArgs& a, int first_sequence, int end_sequence,
                             const F& f) {
    Queries u{.group = a.group()};
    int index = 0;
    for (int s = first_sequence; s < end_sequence; ++s) {
        u.sequence = s;
        u.rows = a.seq.q_start[s + 1] - a.seq.q_start[s];
        if (u.rows == 0 || u.rows > kDecodeRows) continue;
        u.kv_len = a.seq.kv_len[s];
        const int all = u.rows * u.group;
        for (u.first = 0; u.first < all; u.first += kQueries, ++index) {
            u.count = min(kQueries, all - u.first);
            if (!f(u, index)) return;
        }
    }
}

// Work is pages, counted head by head through the sequences; each block takes an equal share of
// neighbours.
template <int kDim, bool kQuantized>
__global__ void __launch_bounds__(kWarps* kWarp)
    decode(AttentionKernelArgs a, Parts parts, int first_sequence, int end_sequence) {
    extern __shared__ uint4 shared[];
    auto& joined = *reinterpret_cast<Joined<kDim>(*)[2]>(shared);
    wait_for_predecessor();
    let_successor_start();
    int total = 0;
    each_queries(a, first_sequence, end_sequence, [&](const Queries& u, int) {
        total += PageRange(a, u).count * a.kv_heads;
        return true;
    });
    const int blocks = static_cast<int>(gridDim.x), share = (total + blocks - 1) / blocks;
    const int begin = static_cast<int>(blockIdx.x) * share, end = min(begin + share, total);
    if (begin >= end) return;
    int done = 0;
    each_queries(a, first_sequence, end_sequence, [&](const Queries& u, int index) {
        const PageRange pages(a, u);
        const int pieces = pages.count * a.kv_heads, last = min(end - done, pieces);
        for (int i = max(begin - done, 0); i < last;) {
            const int page = i % pages.count, count = min(last - i, pages.count - page);
            attend<kDim, kQuantized>(a, parts, u, pages, {index, i / pages.count, page, count},
                                     joined);
            i += count;
        }
        done += pieces;
        return done < end;
    });
}

template <int kDim, bool kQuantized>
void run(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens, int max_pages) {
    // Parts of one launch take up to this much; more sequences take several launches.
    constexpr int64_t kPartBytes = int64_t{64} << 20;
    const int64_t group = a.heads / a.kv_heads;
    const int64_t most_rows = std::min<int64_t>(tokens, kDecodeRows);
    const int64_t queries_each = (most_rows * group + kQueries - 1) / kQueries;
    const int64_t slots_each = queries_each * a.kv_heads * max_pages;
    const int64_t floats_each = slots_each * kQueries * (a.dim + 2);
    const int64_t at_once =
        std::clamp<int64_t>(kPartBytes / (4 * floats_each), 1, std::max(sequences, 1));
    const auto scope = s.workspace().scope();
    Parts parts{.pages = max_pages};
    const int64_t slots = slots_each * at_once;
    parts.sums = s.workspace().take(DType::f32, {slots * kQueries * a.dim}).as<float>();
    parts.weights = reinterpret_cast<float2*>(
        s.workspace().take(DType::f32, {slots * kQueries * 2}).as<float>());
    parts.arrived = s.zeros(static_cast<size_t>(queries_each * a.kv_heads * at_once));
    const size_t shared = 2 * sizeof(Joined<kDim>);
    allow_shared(decode<kDim, kQuantized>, shared);
    for (int64_t begin = 0; begin < sequences; begin += at_once) {
        const int64_t end = std::min<int64_t>(begin + at_once, sequences);
        const int64_t most = (end - begin) * slots_each;
        const auto blocks = std::min<int64_t>(most, (kDim > 64 ? 2 : 4) * s.multiprocessors());
        launch(s, "attention", {dim3(static_cast<unsigned>(blocks)), dim3(kWarps * kWarp), shared},
               decode<kDim, kQuantized>, a, parts, static_cast<int>(begin), static_cast<int>(end));
    }
}

template <bool kQuantized>
void run_dim(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens,
             int max_pages) {
    if (a.dim <= 64)
        run<64, kQuantized>(s, a, sequences, tokens, max_pages);
    else if (a.dim <= 128)
        run<128, kQuantized>(s, a, sequences, tokens, max_pages);
    else
        run<256, kQuantized>(s, a, sequences, tokens, max_pages);
}

}  // namespace

void attention_decode(GpuStream& s, const AttentionKernelArgs& a, int sequences, int64_t tokens,
                      int max_pages, bool quantized) {
    if (quantized)
        run_dim<true>(s, a, sequences, tokens, max_pages);
    else
        run_dim<false>(s, a, sequences, tokens, max_pages);
}

}  // namespace exl3::gpu
