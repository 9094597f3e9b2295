#pragma once
#include <algorithm>
#include <vector>

#include "support/devices.h"

namespace exl3::test {

/// Rows of one sequence in a batch, and tokens cached before them.
struct Rows {
    int rows = 1;
    int past = 0;
};

/// A batch over a paged cache whose pages are dealt out in a random order.
struct PagedBatch {
    SequencesView seq;
    KvView cache;
    int tokens = 0;
    int64_t dim = 0;  ///< channels of a head
    std::vector<int32_t> kv_len;
};

/// @param kv_heads, dim  shape of the cache; every value is NaN, so reading a token that was never
///                       written shows in the result
/// @param bits  of a quantized cache, whose scales are then NaN
inline PagedBatch paged_batch(Arena& a, const std::vector<Rows>& sequences, int64_t kv_heads,
                              int64_t dim, KvBits bits = {}) {
    std::vector<int32_t> q_start = {0}, kv_len, order;
    int32_t most = 1, used = 0;
    for (const auto& [rows, past] : sequences) {
        q_start.push_back(q_start.back() + rows);
        kv_len.push_back(rows + past);
        const int32_t pages = (rows + past + kPageTokens - 1) / kPageTokens;
        most = std::max(most, pages);
        used += pages;
    }
    for (int32_t i = 0; i < used; ++i) order.push_back(i);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[a.random().below(i)]);
    const auto count = static_cast<int64_t>(sequences.size());
    // Entries that no token needs name no page.
    std::vector<int32_t> pages(static_cast<size_t>(count * most), -1);
    size_t next = 0;
    for (size_t s = 0; s < sequences.size(); ++s)
        for (int32_t p = 0; p < (kv_len[s] + kPageTokens - 1) / kPageTokens; ++p)
            pages[s * static_cast<size_t>(most) + static_cast<size_t>(p)] = order[next++];

    // Long enough for every plane: f16 NaN wherever a value or a scale is read.
    const std::vector<uint16_t> nan(
        static_cast<size_t>(std::max(used, 1) * kPageTokens * kv_heads * dim), 0x7e00);
    const auto plane = [&](DType type, int64_t n) {
        return a.raw(nan.data(), type, {std::max(used, 1), kPageTokens, kv_heads, n});
    };
    const auto data = [&](int b) {
        return b == 16 ? plane(DType::f16, dim) : plane(DType::u32, dim / 32 * b);
    };
    const auto scale = [&](int b) { return b == 16 ? View{} : plane(DType::f16, dim / 32); };
    const View k = data(bits.keys), k_scale = scale(bits.keys);
    const View v = data(bits.values), v_scale = scale(bits.values);
    return {.seq = {.q_start = a.ints(q_start, {count + 1}),
                    .kv_len = a.ints(kv_len, {count}),
                    .pages = a.ints(pages, {count, most})},
            .cache = {.k = k, .v = v, .k_scale = k_scale, .v_scale = v_scale},
            .tokens = q_start.back(),
            .dim = dim,
            .kv_len = kv_len};
}

/// Caches random keys and values for every token of the batch, those of earlier calls included.
inline void fill_cache(Stream& s, Arena& a, const PagedBatch& b, double scale = 1) {
    const int64_t sequences = b.seq.kv_len.shape[0];
    std::vector<int32_t> start = {0};
    for (int64_t i = 0; i < sequences; ++i)
        start.push_back(start.back() + b.kv_len[static_cast<size_t>(i)]);
    SequencesView all = b.seq;
    all.q_start = a.ints(start, {sequences + 1});
    const Shape shape{start.back(), b.cache.kv_heads(), b.dim};
    ops::kv_append(s, {.k = a.normal(shape, DType::f32, scale),
                       .v = a.normal(shape),
                       .seq = all,
                       .cache = b.cache});
}

}  // namespace exl3::test
