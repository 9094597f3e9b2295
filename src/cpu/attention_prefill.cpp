// Many query rows: tiles of keys against tiles of queries with a running maximum. Queries lie
// across the vector lanes, so the softmax never reduces within a vector and both products are
// outer_tile.
#define EXL3_ISA_FILE "cpu/attention_prefill.cpp"
#include "cpu/isa.h"

#include "cpu/attention.h"
#include "ops/kv_group.h"

EXL3_ISA_BEGIN

#include "cpu/kv_planes.h"

inline constexpr int kLanes = kTileVectors * F32::width;  // queries in a tile
inline constexpr int kTiles = 4;                          // tiles that share converted keys
inline constexpr int kKeys = 48;                          // keys in a tile; kTileRows divides it
inline constexpr int kChannels = 128;                     // channels in a slice of the keys

// Scratch of a task. Quantized keys and values stay rotated in it. The strides between rows of keys
// are constants: twelve broadcasts a step need addresses that differ by an immediate.
struct PrefillScratch {
    float* keys;     // (slices, kKeys, kChannels)
    float* values;   // (kKeys, dim)
    float* weights;  // (kKeys, kLanes)
    float* record;   // (dim + 2)
    f16* row;        // (dim), of a quantized cache
    float* tiles;    // kTiles of PrefillTile
};

struct PrefillTile {
    float* q;      // (dim, kLanes), times scale
    float* sums;   // (dim, kLanes)
    float* top;    // (kLanes)
    float* total;  // (kLanes)
    float* first;  // (kLanes): first and last visible key
    float* last;   // (kLanes)
    int lane, lanes;
    int key_begin, key_end;  // keys that any lane sees
    int all_begin, all_end;  // keys that every lane sees
};

inline int64_t prefill_slices(int64_t dim) {
    return (dim + kChannels - 1) / kChannels;
}

inline int64_t prefill_tile_floats(int64_t dim) {
    return (2 * dim + 4) * kLanes;
}

// Floats, or twice as many f16, on a cache line of their own.
inline int64_t prefill_row(int64_t n) {
    return (n + 15) / 16 * 16;
}

int64_t prefill_scratch(int64_t dim) {
    const int64_t record = prefill_row(dim + 2), values = prefill_row(kKeys * dim);
    return prefill_slices(dim) * kKeys * kChannels + values + kKeys * kLanes + 2 * record +
           kTiles * prefill_tile_floats(dim);
}

inline PrefillScratch prefill_cut(float* p, int64_t dim) {
    PrefillScratch s{};
    s.keys = p;
    s.values = s.keys + prefill_slices(dim) * kKeys * kChannels;
    s.weights = s.values + prefill_row(kKeys * dim);
    s.record = s.weights + kKeys * kLanes;
    s.row = reinterpret_cast<f16*>(s.record + prefill_row(dim + 2));
    s.tiles = s.record + 2 * prefill_row(dim + 2);
    return s;
}

// Gathers the queries of a tile and empties its sums. Lanes past the last repeat it.
PrefillTile prefill_begin(const AttentionArgs& a, const AttentionTask& t, int lane,
                          const PrefillScratch& s, float* p) {
    const int64_t dim = a.q.shape[2];
    const int group = static_cast<int>(a.q.shape[1] / a.cache.kv_heads());
    PrefillTile x{.q = p,
                  .sums = p + dim * kLanes,
                  .top = p + 2 * dim * kLanes,
                  .total = p + (2 * dim + 1) * kLanes,
                  .first = p + (2 * dim + 2) * kLanes,
                  .last = p + (2 * dim + 3) * kLanes,
                  .lane = lane,
                  .lanes = static_cast<int>(lesser(kLanes, t.lane_end - lane))};
    const SequencesOnHost seq{a.seq};
    const auto position = [&](int l) {
        return seq.position(t.sequence, seq.begin(t.sequence) + (lane + l) / group);
    };
    const auto first = [&](int l) {
        const int begin = position(l) - a.window + 1;
        return a.window > 0 && begin > 0 ? begin : 0;
    };
    for (int l = 0; l < kLanes; ++l) {
        const int from = static_cast<int>(lesser(l, x.lanes - 1));
        const float* q = a.q.row<float>(query_row(a, t, lane + from));
        if (a.cache.k_scale) {
            std::memcpy(s.record, q, static_cast<size_t>(dim) * sizeof(float));
            kv_rotate_groups(s.record, dim);
            q = s.record;
        }
        for (int64_t i = 0; i < dim; ++i) x.q[i * kLanes + l] = q[i] * a.scale;
        x.first[l] = static_cast<float>(first(from));
        x.last[l] = static_cast<float>(position(from));
        x.top[l] = kNoMaximum;
        x.total[l] = 0;
    }
    for (int64_t i = 0; i < dim * kLanes; ++i) x.sums[i] = 0;
    x.key_begin = first(0);
    x.key_end = position(x.lanes - 1) + 1;
    x.all_begin = first(x.lanes - 1);
    x.all_end = position(0) + 1;
    return x;
}

inline void prefill_convert(const f16* x, float* out, int64_t n) {
    int64_t i = 0;
    for (; i + F32::width <= n; i += F32::width) F32::load(x + i).store(out + i);
    if (i < n) F32::load(x + i, n - i).store(out + i, n - i);
}

// A row of the cache as f16, expanded into `own` if it is quantized; fetches the row `later`.
inline const f16* prefill_row_of(const View& plane, const View& scale, int64_t row, int64_t later,
                                 int64_t dim, f16* own) {
    if (scale) {
        kv_expand(plane, scale, row, dim, own);
        return own;
    }
    for (int64_t i = 0; i < dim; i += 32) __builtin_prefetch(cached(plane, later) + i, 0, 2);
    return cached(plane, row);
}

// Converts keys and values [key, key + count) to f32. The rows that fill up a block of keys are
// zero.
void prefill_load(const AttentionArgs& a, const AttentionTask& t, int key, int count,
                  const PrefillScratch& s) {
    const int64_t dim = a.q.shape[2];
    for (int n = 0; n < count; ++n) {
        const int64_t row = cache_row(a, t, key + n);
        // The same row of the next tile: it arrives during the products of this one.
        const int64_t later =
            cache_row(a, t, static_cast<int>(lesser(key + n + kKeys, t.key_end - 1)));
        const f16* k = prefill_row_of(a.cache.k, a.cache.k_scale, row, later, dim, s.row);
        for (int64_t i = 0; i < dim; i += kChannels)
            prefill_convert(k + i, s.keys + (i / kChannels * kKeys + n) * kChannels,
                            lesser(kChannels, dim - i));
        const f16* v = prefill_row_of(a.cache.v, a.cache.v_scale, row, later, dim, s.row);
        prefill_convert(v, s.values + n * dim, dim);
    }
    for (int n = count; n % kTileRows != 0; ++n)
        for (int64_t c = 0; c < prefill_slices(dim); ++c)
            for (int i = 0; i < kChannels; ++i) s.keys[(c * kKeys + n) * kChannels + i] = 0;
}

// Logits of `count` keys for one tile of queries.
void prefill_scores(const PrefillScratch& s, const PrefillTile& x, int64_t dim, int count,
                    float softcap) {
    for (int n = 0; n < count; n += kTileRows) {
        F32 acc[kTileRows][kTileVectors];
        clear_tile(acc);
        for (int64_t i = 0; i < dim; i += kChannels)
            outer_tile<kTileRows, kTileVectors>(s.keys + (i / kChannels * kKeys + n) * kChannels,
                                                kChannels, 1, x.q + i * kLanes, kLanes,
                                                lesser(kChannels, dim - i), acc);
        store_tile(acc, s.weights + n * kLanes, kLanes);
    }
    if (softcap > 0)
        for (int i = 0; i < count * kLanes; i += F32::width)
            (tanh(F32::load(s.weights + i) * F32::set(1 / softcap)) * F32::set(softcap))
                .store(s.weights + i);
}

// -inf where a key is outside a lane's window.
void prefill_mask(const PrefillScratch& s, const PrefillTile& x, int key, int count) {
    const F32 never = F32::set(-INFINITY);
    for (int n = 0; n < count; ++n) {
        const F32 at = F32::set(static_cast<float>(key + n));
        for (int v = 0; v < kLanes; v += F32::width) {
            float* w = s.weights + n * kLanes + v;
            const F32 score = select_le(at, F32::load(x.last + v), F32::load(w), never);
            select_le(F32::load(x.first + v), at, score, never).store(w);
        }
    }
}

// Logits to weights under the running maximum; `shrink` is what the earlier sums are multiplied by.
void prefill_softmax(const PrefillScratch& s, const PrefillTile& x, int count,
                     F32 (&shrink)[kTileVectors]) {
    for (int v = 0; v < kTileVectors; ++v) {
        float* w = s.weights + v * F32::width;
        const F32 before = F32::load(x.top + v * F32::width);
        F32 top = before;
        for (int n = 0; n < count; ++n) top = max(top, F32::load(w + n * kLanes));
        shrink[v] = exp(before - top);
        F32 total = F32::load(x.total + v * F32::width) * shrink[v];
        for (int n = 0; n < count; ++n) {
            const F32 p = exp(F32::load(w + n * kLanes) - top);
            p.store(w + n * kLanes);
            total = total + p;
        }
        top.store(x.top + v * F32::width);
        total.store(x.total + v * F32::width);
    }
}

template <int M>
void prefill_channels(const PrefillScratch& s, const PrefillTile& x, int64_t channel, int64_t dim,
                      int count, const F32 (&shrink)[kTileVectors]) {
    F32 acc[M][kTileVectors];
    float* sums = x.sums + channel * kLanes;
    load_tile(acc, sums, kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < kTileVectors; ++v) acc[m][v] = acc[m][v] * shrink[v];
    outer_tile<M, kTileVectors>(s.values + channel, 1, dim, s.weights, kLanes, count, acc);
    store_tile(acc, sums, kLanes);
}

template <int M = kTileRows>
void prefill_rest(const PrefillScratch& s, const PrefillTile& x, int64_t channel, int64_t dim,
                  int count, const F32 (&shrink)[kTileVectors]) {
    if (dim - channel == M) return prefill_channels<M>(s, x, channel, dim, count, shrink);
    if constexpr (M > 1) prefill_rest<M - 1>(s, x, channel, dim, count, shrink);
}

void prefill_tile(const AttentionArgs& a, const PrefillScratch& s, const PrefillTile& x, int key,
                  int count) {
    const int64_t dim = a.q.shape[2];
    prefill_scores(s, x, dim, count, a.softcap);
    if (key < x.all_begin || key + count > x.all_end) prefill_mask(s, x, key, count);
    F32 shrink[kTileVectors];
    prefill_softmax(s, x, count, shrink);
    int64_t channel = 0;
    for (; channel + kTileRows <= dim; channel += kTileRows)
        prefill_channels<kTileRows>(s, x, channel, dim, count, shrink);
    prefill_rest(s, x, channel, dim, count, shrink);
}

void prefill_end(const AttentionArgs& a, const AttentionTask& t, const PrefillTile& x, float* own,
                 AttentionFinish finish) {
    const int64_t dim = a.q.shape[2];
    for (int l = 0; l < x.lanes; ++l) {
        float* record = record_of(a, t, x.lane + l, own);
        for (int64_t i = 0; i < dim; ++i) record[i] = x.sums[i * kLanes + l];
        if (a.cache.v_scale) kv_rotate_groups(record, dim);
        record[dim] = x.top[l];
        record[dim + 1] = x.total[l];
        if (t.records) continue;
        const int64_t row = query_row(a, t, x.lane + l);
        finish(record, 1, dim, a.sinks ? a.sinks.as<float>() + row % a.q.shape[1] : nullptr,
               a.y.row<float>(row));
    }
}

void prefill_task(const AttentionArgs& a, const AttentionTask& t, AttentionFinish finish,
                  float* scratch) {
    const int64_t dim = a.q.shape[2];
    const PrefillScratch s = prefill_cut(scratch, dim);
    PrefillTile tiles[kTiles];
    int count = 0;
    for (int lane = t.lane_begin; lane < t.lane_end; lane += kLanes, ++count)
        tiles[count] = prefill_begin(a, t, lane, s, s.tiles + count * prefill_tile_floats(dim));
    for (int key = t.key_begin; key < t.key_end; key += kKeys) {
        const int keys = static_cast<int>(lesser(kKeys, t.key_end - key));
        prefill_load(a, t, key, keys, s);
        for (int i = 0; i < count; ++i)
            if (key < tiles[i].key_end && key + keys > tiles[i].key_begin)
                prefill_tile(a, s, tiles[i], key, keys);
    }
    for (int i = 0; i < count; ++i) prefill_end(a, t, tiles[i], s.record, finish);
}

AttentionKernel prefill_kernel_of_tier() {
    return {.run = prefill_task, .scratch = prefill_scratch, .lanes = kTiles * kLanes};
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

AttentionKernel prefill_kernel(const Stream& s) {
    return EXL3_ISA_PICK(s, prefill_kernel_of_tier)();
}

}  // namespace exl3::cpu
#endif
