// One query row: keys and values are read once, as they lie in the cache, for a group of heads.
#define EXL3_ISA_FILE "cpu/attention_decode.cpp"
#include "cpu/isa.h"

#include "cpu/attention.h"

EXL3_ISA_BEGIN

// Heads that share one pass over the keys, and vectors of the value beside them.
inline constexpr int kDecodeHeads = F32::width == 16 ? 4 : 2;
inline constexpr int kDecodeVectors = 4;

inline int64_t decode_padded(int64_t n) {
    return (n + F32::width - 1) / F32::width * F32::width;
}

// Logits of G heads for the keys of a task, key k at scores[g * kDecodeKeys + k].
template <int G>
void decode_scores(const AttentionArgs& a, const AttentionTask& t, const float* q, float* scores) {
    const int64_t dim = a.q.shape[2], step = a.cache.k.shape[2] * dim;
    for (int key = t.key_begin; key < t.key_end;) {
        const int end = page_end(key, t.key_end);
        const f16* k = cached(a, a.cache.k, t, key);
        const f16* v = cached(a, a.cache.v, t, key);
        float* out = scores + (key - t.key_begin);
        for (; key + 4 <= end; key += 4, k += 4 * step, v += 4 * step, out += 4) {
            // Rows of one head are kv_heads * dim apart, further than hardware looks ahead. Values
            // come next: they wait in the second-level cache.
            for (int n = 0; n < 4; ++n)
                for (int64_t i = 0; i < dim; i += 32) {
                    __builtin_prefetch(k + (16 + n) * step + i, 0, 3);
                    __builtin_prefetch(v + n * step + i, 0, 2);
                }
            F32 acc[G][4];
            clear_tile(acc);
            dot_tile<G, 4>(q, k, step, dim, acc);
#pragma GCC unroll 8
            for (int g = 0; g < G; ++g)
                sum4(acc[g][0], acc[g][1], acc[g][2], acc[g][3], out + g * kDecodeKeys);
        }
        for (; key < end; ++key, k += step, ++out) {
            F32 acc[G][1];
            clear_tile(acc);
            dot_tile<G, 1>(q, k, step, dim, acc);
            float sum[4];
            for (int g = 0; g < G; ++g) {
                sum4(acc[g][0], acc[g][0], acc[g][0], acc[g][0], sum);
                out[g * kDecodeKeys] = sum[0];
            }
        }
    }
}

// Logits to weights, in place; returns their sum and the largest logit.
inline float decode_softmax(float* scores, int keys, float softcap, float* top) {
    const int64_t padded = decode_padded(keys);
    for (int64_t i = keys; i < padded; ++i) scores[i] = -INFINITY;
    if (softcap > 0)
        for (int64_t i = 0; i < keys; i += F32::width)
            (tanh(F32::load(scores + i) * F32::set(1 / softcap)) * F32::set(softcap))
                .store(scores + i, lesser(F32::width, keys - i));
    F32 most = F32::load(scores);
    for (int64_t i = F32::width; i < padded; i += F32::width)
        most = max(most, F32::load(scores + i));
    *top = max_of(most);
    F32 total = F32::set(0);
    for (int64_t i = 0; i < padded; i += F32::width) {
        const F32 p = exp(F32::load(scores + i) - F32::set(*top));
        p.store(scores + i);
        total = total + p;
    }
    return sum(total);
}

// Adds weights times values to V vectors of the sums of G heads, one page at a time.
template <int G, int V>
void decode_values(const float* p, const f16* v, int64_t step, int keys, float* sums,
                   int64_t padded, bool first) {
    F32 acc[G][V];
    if (first)
        clear_tile(acc);
    else
        load_tile(acc, sums, padded);
    outer_tile<G, V>(p, kDecodeKeys, 1, v, step, keys, acc);
    store_tile(acc, sums, padded);
}

// The last values of a head dimension that no vector divides.
template <int G>
void decode_values_tail(const float* p, const f16* v, int64_t step, int keys, float* sums,
                        int64_t padded, int64_t count, bool first) {
    F32 acc[G];
    for (int g = 0; g < G; ++g) acc[g] = first ? F32::set(0) : F32::load(sums + g * padded);
    for (int key = 0; key < keys; ++key) {
        const F32 row = F32::load(v + key * step, count);
        for (int g = 0; g < G; ++g) acc[g] = fma(F32::set(p[g * kDecodeKeys + key]), row, acc[g]);
    }
    for (int g = 0; g < G; ++g) acc[g].store(sums + g * padded);
}

template <int G>
void decode_sums(const AttentionArgs& a, const AttentionTask& t, const float* p, float* sums) {
    const int64_t dim = a.q.shape[2], step = a.cache.v.shape[2] * dim, padded = decode_padded(dim);
    for (int key = t.key_begin; key < t.key_end;) {
        const int end = page_end(key, t.key_end);
        const bool first = key == t.key_begin;
        const f16* v = cached(a, a.cache.v, t, key);
        const float* w = p + (key - t.key_begin);
        int64_t i = 0;
        for (; i + kDecodeVectors * F32::width <= dim; i += kDecodeVectors * F32::width)
            decode_values<G, kDecodeVectors>(w, v + i, step, end - key, sums + i, padded, first);
        for (; i + F32::width <= dim; i += F32::width)
            decode_values<G, 1>(w, v + i, step, end - key, sums + i, padded, first);
        if (i < dim)
            decode_values_tail<G>(w, v + i, step, end - key, sums + i, padded, dim - i, first);
        key = end;
    }
}

template <int G>
void decode_heads(const AttentionArgs& a, const AttentionTask& t, int lane, AttentionFinish finish,
                  float* scratch) {
    const int64_t dim = a.q.shape[2], padded = decode_padded(dim);
    float* q = scratch;
    float* scores = q + G * padded;
    float* sums = scores + G * kDecodeKeys;
    float* own = sums + G * padded;
    for (int g = 0; g < G; ++g) {
        const float* from = a.q.row<float>(query_row(a, t, lane + g));
        for (int64_t i = 0; i < padded; i += F32::width)
            (F32::load(from + i, lesser(F32::width, dim - i)) * F32::set(a.scale))
                .store(q + i * G + g * F32::width);
    }
    decode_scores<G>(a, t, q, scores);
    float top[G], total[G];
    for (int g = 0; g < G; ++g)
        total[g] =
            decode_softmax(scores + g * kDecodeKeys, t.key_end - t.key_begin, a.softcap, &top[g]);
    decode_sums<G>(a, t, scores, sums);
    for (int g = 0; g < G; ++g) {
        float* record = record_of(a, t, lane + g, own);
        std::memcpy(record, sums + g * padded, static_cast<size_t>(dim) * sizeof(float));
        record[dim] = top[g];
        record[dim + 1] = total[g];
        const int64_t row = query_row(a, t, lane + g);
        if (!t.records)
            finish(record, 1, dim, a.sinks ? a.sinks.as<float>() + row % a.q.shape[1] : nullptr,
                   a.y.row<float>(row));
    }
}

void decode_task(const AttentionArgs& a, const AttentionTask& t, AttentionFinish finish,
                 float* scratch) {
    int lane = t.lane_begin;
    for (; lane + kDecodeHeads <= t.lane_end; lane += kDecodeHeads)
        decode_heads<kDecodeHeads>(a, t, lane, finish, scratch);
    for (; lane + 2 <= t.lane_end; lane += 2) decode_heads<2>(a, t, lane, finish, scratch);
    for (; lane < t.lane_end; ++lane) decode_heads<1>(a, t, lane, finish, scratch);
}

int64_t decode_scratch(int64_t dim) {
    return kDecodeHeads * (2 * decode_padded(dim) + kDecodeKeys) + decode_padded(dim + 2);
}

AttentionKernel decode_kernel_of_tier() {
    return {.run = decode_task, .scratch = decode_scratch};
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

AttentionKernel decode_kernel(const Stream& s) {
    return EXL3_ISA_PICK(s, decode_kernel_of_tier)();
}

}  // namespace exl3::cpu
#endif
