// A few query rows: keys and values are read once, as they lie in the cache, for all lanes of a
// task. Rows of one head are kv_heads * dim apart, further than hardware looks ahead, so memory is
// kept busy by hand: while keys are multiplied the values of the same tokens are fetched, while
// values are summed the keys of the next tokens. Quantized ones are expanded block by block into
// the innermost cache, still rotated, and used from there.
#define EXL3_ISA_FILE "cpu/attention_decode.cpp"
#include "cpu/isa.h"

#include <type_traits>

#include "cpu/attention.h"
#include "ops/kv_group.h"

EXL3_ISA_BEGIN

#include "cpu/kv_planes.h"

inline constexpr int kDecodeLanes = F32::width == 16 ? 4 : 2;  // lanes in a register tile
inline constexpr int kDecodeVectors = 4;                       // vectors of a value in one
inline constexpr int64_t kLine = 32;                           // f16 in a cache line

inline int64_t decode_padded(int64_t n) {
    return (n + F32::width - 1) / F32::width * F32::width;
}

// Scratch of a task: its lanes with their running softmax.
struct DecodeState {
    float* q;       // (lanes, padded) interleaved by tile of lanes, times scale
    float* sums;    // (lanes, padded)
    float* top;     // (lanes)
    float* total;   // (lanes)
    float* scores;  // (kDecodeLanes, kBlockKeys)
    float* record;  // (dim + 2)
    f16* keys;      // (kBlockKeys, dim), of a quantized cache
    f16* values;    // the same
    int64_t dim, padded;
    int group, window;
    int position;  // of the first row
    float softcap;
};

int64_t decode_scratch(int64_t dim) {
    return kDecodeLaneLimit * (2 * decode_padded(dim) + 2) + kDecodeLanes * kBlockKeys + dim + 2 +
           kBlockKeys * dim;
}

DecodeState decode_cut(const AttentionArgs& a, const AttentionTask& t, float* p) {
    const SequencesOnHost seq{a.seq};
    const int64_t dim = a.q.shape[2], lanes = t.lane_end;
    DecodeState s{.dim = dim, .padded = decode_padded(dim)};
    s.q = p;
    s.sums = s.q + lanes * s.padded;
    s.scores = s.sums + lanes * s.padded;
    s.top = s.scores + kDecodeLanes * kBlockKeys;
    s.total = s.top + lanes;
    s.record = s.total + lanes;
    s.keys = reinterpret_cast<f16*>(s.record + dim + 2);
    s.values = s.keys + kBlockKeys * dim;
    s.group = static_cast<int>(a.q.shape[1] / a.cache.kv_heads());
    s.window = a.window;
    s.position = seq.position(t.sequence, seq.begin(t.sequence));
    s.softcap = a.softcap;
    return s;
}

// Tokens of one page, at most kBlockKeys.
struct DecodeBlock {
    const f16* k;
    const f16* v;
    const f16* next;         // keys of the tokens to come, as many
    int64_t k_step, v_step;  // from token to token
    int first, keys;
};

template <int G>
void decode_scores(const DecodeState& s, const DecodeBlock& b, const float* q, bool fetch) {
    int key = 0;
    for (; key + 4 <= b.keys; key += 4) {
        if (fetch)
            for (int n = 0; n < 4; ++n)
                for (int64_t i = 0; i < s.dim; i += kLine)
                    __builtin_prefetch(b.v + (key + n) * b.v_step + i);
        F32 acc[G][4];
        clear_tile(acc);
        dot_tile<G, 4>(q, b.k + key * b.k_step, b.k_step, s.dim, acc);
#pragma GCC unroll 8
        for (int g = 0; g < G; ++g)
            sum4(acc[g][0], acc[g][1], acc[g][2], acc[g][3], s.scores + g * kBlockKeys + key);
    }
    for (; key < b.keys; ++key) {
        F32 acc[G][1];
        clear_tile(acc);
        dot_tile<G, 1>(q, b.k + key * b.k_step, b.k_step, s.dim, acc);
        float sum[4];
        for (int g = 0; g < G; ++g) {
            sum4(acc[g][0], acc[g][0], acc[g][0], acc[g][0], sum);
            s.scores[g * kBlockKeys + key] = sum[0];
        }
    }
}

// Logits to weights under the running maximum of a lane; returns the factor of its earlier sums.
inline float decode_softmax(const DecodeState& s, const DecodeBlock& b, int lane, float* scores) {
    const int64_t padded = decode_padded(b.keys);
    if (s.softcap > 0)
        for (int64_t i = 0; i < padded; i += F32::width)
            (tanh(F32::load(scores + i) * F32::set(1 / s.softcap)) * F32::set(s.softcap))
                .store(scores + i);
    const int position = s.position + lane / s.group;
    const int64_t begin = s.window > 0 ? position + 1 - s.window - b.first : 0;
    const int64_t end = lesser(position + 1 - b.first, b.keys);
    for (int64_t i = 0; i < lesser(begin, padded); ++i) scores[i] = -INFINITY;
    for (int64_t i = end > 0 ? end : 0; i < padded; ++i) scores[i] = -INFINITY;
    float* top = s.top + lane;
    F32 most = F32::set(*top);
    for (int64_t i = 0; i < padded; i += F32::width) most = max(most, F32::load(scores + i));
    const float before = *top;
    *top = max_of(most);
    F32 added = F32::set(0);
    for (int64_t i = 0; i < padded; i += F32::width) {
        const F32 p = exp(F32::load(scores + i) - F32::set(*top));
        p.store(scores + i);
        added = added + p;
    }
    const float shrink = before == *top ? 1 : std::exp(before - *top);
    s.total[lane] = s.total[lane] * shrink + sum(added);
    return shrink;
}

// sums = sums * shrink + weights times values, for V vectors of G heads.
template <int G, int V>
void decode_values(const DecodeState& s, const DecodeBlock& b, int64_t channel, const float* shrink,
                   float* sums, bool fetch) {
    F32 acc[G][V];
    load_tile(acc, sums + channel, s.padded);
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g)
#pragma GCC unroll 8
        for (int n = 0; n < V; ++n) acc[g][n] = acc[g][n] * F32::set(shrink[g]);
    const f16* v = b.v + channel;
    const f16* next = b.next + channel;
    for (int key = 0; key < b.keys; ++key, v += b.v_step, next += b.k_step) {
        if (fetch)
            for (int64_t i = 0; i < V * F32::width; i += kLine) __builtin_prefetch(next + i);
        outer_tile<G, V>(s.scores + key, kBlockKeys, 0, v, 0, 1, acc);
    }
    store_tile(acc, sums + channel, s.padded);
}

// The last values of a head dimension that no vector divides.
template <int G>
void decode_values_tail(const DecodeState& s, const DecodeBlock& b, int64_t channel,
                        const float* shrink, float* sums) {
    for (int g = 0; g < G; ++g) {
        float* out = sums + g * s.padded + channel;
        F32 acc = F32::load(out) * F32::set(shrink[g]);
        for (int key = 0; key < b.keys; ++key)
            acc = fma(F32::set(s.scores[g * kBlockKeys + key]),
                      F32::load(b.v + key * b.v_step + channel, s.dim - channel), acc);
        acc.store(out);
    }
}

// One block of tokens for lanes [lane, lane + G).
template <int G>
void decode_block(const DecodeState& s, const DecodeBlock& b, int lane) {
    const bool fetch = lane == 0;  // once for all lanes
    decode_scores<G>(s, b, s.q + lane * s.padded, fetch);
    float shrink[G];
    for (int g = 0; g < G; ++g)
        shrink[g] = decode_softmax(s, b, lane + g, s.scores + g * kBlockKeys);
    float* sums = s.sums + lane * s.padded;
    int64_t i = 0;
    for (; i + kDecodeVectors * F32::width <= s.dim; i += kDecodeVectors * F32::width)
        decode_values<G, kDecodeVectors>(s, b, i, shrink, sums, fetch);
    for (; i + F32::width <= s.dim; i += F32::width)
        decode_values<G, 1>(s, b, i, shrink, sums, fetch);
    if (i < s.dim) decode_values_tail<G>(s, b, i, shrink, sums);
}

// Calls fn(lane, integral constant of the tile's lanes) over all lanes.
template <typename Fn>
EXL3_INLINE void decode_tiles(int lanes, const Fn& fn) {
    int lane = 0;
    for (; lane + kDecodeLanes <= lanes; lane += kDecodeLanes)
        fn(lane, std::integral_constant<int, kDecodeLanes>());
    for (; lane + 2 <= lanes; lane += 2) fn(lane, std::integral_constant<int, 2>());
    for (; lane < lanes; ++lane) fn(lane, std::integral_constant<int, 1>());
}

void decode_begin(const AttentionArgs& a, const AttentionTask& t, const DecodeState& s) {
    decode_tiles(t.lane_end, [&](int lane, auto tile) {
        constexpr int G = decltype(tile)::value;
        for (int g = 0; g < G; ++g) {
            const float* q = a.q.row<float>(query_row(a, t, lane + g));
            if (a.cache.k_scale) {
                std::memcpy(s.record, q, static_cast<size_t>(s.dim) * sizeof(float));
                kv_rotate_groups(s.record, s.dim);
                q = s.record;
            }
            for (int64_t i = 0; i < s.padded; i += F32::width)
                (F32::load(q + i, lesser(F32::width, s.dim - i)) * F32::set(a.scale))
                    .store(s.q + lane * s.padded + i * G + g * F32::width);
        }
    });
    for (int64_t i = 0; i < t.lane_end * s.padded; ++i) s.sums[i] = 0;
    for (int l = 0; l < t.lane_end; ++l) s.top[l] = kNoMaximum, s.total[l] = 0;
}

void decode_end(const AttentionArgs& a, const AttentionTask& t, const DecodeState& s,
                AttentionFinish finish) {
    for (int l = 0; l < t.lane_end; ++l) {
        float* record = record_of(a, t, l, s.record);
        std::memcpy(record, s.sums + l * s.padded, static_cast<size_t>(s.dim) * sizeof(float));
        if (a.cache.v_scale) kv_rotate_groups(record, s.dim);
        record[s.dim] = s.top[l];
        record[s.dim + 1] = s.total[l];
        if (t.records) continue;
        const int64_t row = query_row(a, t, l);
        finish(record, 1, s.dim, a.sinks ? a.sinks.as<float>() + row % a.q.shape[1] : nullptr,
               a.y.row<float>(row));
    }
}

// Points at the tokens [b.first, b.first + b.keys), expanded where they are quantized.
void decode_find(const AttentionArgs& a, const AttentionTask& t, const DecodeState& s,
                 DecodeBlock& b) {
    const int64_t row = cache_row(a, t, b.first), step = a.cache.kv_heads();
    const auto find = [&](const View& plane, const View& scale, f16* expanded, int64_t& stride) {
        stride = scale ? s.dim : step * s.dim;
        if (!scale) return cached(plane, row);
        for (int n = 0; n < b.keys; ++n)
            kv_expand(plane, scale, row + n * step, s.dim, expanded + n * s.dim);
        return static_cast<const f16*>(expanded);
    };
    b.k = find(a.cache.k, a.cache.k_scale, s.keys, b.k_step);
    b.v = find(a.cache.v, a.cache.v_scale, s.values, b.v_step);
    if (a.cache.k_scale) {
        b.next = b.k;
        return;
    }
    // After the last tokens of this task comes the next head of the same run, as a rule.
    const int end = b.first + b.keys;
    b.next = end < t.key_end ? cached(a.cache.k, cache_row(a, t, end))
                             : cached(a.cache.k, cache_row(a, t, t.key_begin)) + s.dim;
}

void decode_task(const AttentionArgs& a, const AttentionTask& t, AttentionFinish finish,
                 float* scratch) {
    const DecodeState s = decode_cut(a, t, scratch);
    decode_begin(a, t, s);
    for (int key = t.key_begin; key < t.key_end;) {
        const int end = static_cast<int>(lesser((key / kBlockKeys + 1) * kBlockKeys, t.key_end));
        DecodeBlock b{.first = key, .keys = end - key};
        decode_find(a, t, s, b);
        decode_tiles(t.lane_end,
                     [&](int lane, auto tile) { decode_block<decltype(tile)::value>(s, b, lane); });
        key = end;
    }
    decode_end(a, t, s, finish);
}

AttentionKernel decode_kernel_of_tier() {
    return {.run = decode_task, .scratch = decode_scratch, .lanes = kDecodeLaneLimit};
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

AttentionKernel decode_kernel(const Stream& s) {
    return EXL3_ISA_PICK(s, decode_kernel_of_tier)();
}

}  // namespace exl3::cpu
#endif
