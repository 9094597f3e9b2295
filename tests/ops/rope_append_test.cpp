#include "support/sequences.h"

namespace exl3::test {
namespace {

struct Case {
    int64_t heads = 4, kv_heads = 2, dim = 64, rotated = 64;
    RopeStyle style = RopeStyle::neox;
    bool norms = false;
    float beta = 0;
    KvBits bits{};
};

// Queries and keys as turned, then what the cache holds, as numbers.
View turned(Stream& s, Arena& a, const Case& c) {
    const PagedBatch b =
        paged_batch(a, {{1, 255}, {0, 0}, {5, 254}, {17, 3}}, c.kv_heads, c.dim, c.bits);
    const View q = a.normal({b.tokens, c.heads, c.dim}),
               k = a.normal({b.tokens, c.kv_heads, c.dim});
    std::vector<int32_t> positions;
    for (int i = 0; i < b.tokens; ++i) positions.push_back(i * 1000 + 3);
    std::vector<float> inv_freq;
    for (int64_t i = 0; i < c.rotated / 2; ++i)
        inv_freq.push_back(
            std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(c.rotated)));
    fill_cache(s, a, b);
    const auto norm = [&](DType type) {
        return c.norms ? HeadNorm{a.normal({c.dim}, type), 1e-6f, 1} : HeadNorm{};
    };
    ops::rope_append(
        s, {.q = q,
            .k = k,
            .v = a.normal(k.shape),
            .q_norm = norm(DType::bf16),
            .k_norm = norm(DType::f16),
            .positions = a.ints(positions, {b.tokens}),
            .inv_freq = c.rotated ? ConstView(a.raw(inv_freq.data(), DType::f32, {c.rotated / 2}))
                                  : ConstView{},
            .style = c.style,
            .attention_factor = 1.1f,
            .query_scale_beta = c.beta,
            .query_scale_length = 4000,
            .seq = b.seq,
            .cache = b.cache});
    std::vector<float> all = values_of(s, q);
    for (const float v : values_of(s, k)) all.push_back(v);
    // What a group of queries sees of the cache stands for its contents.
    const View y = a.zeros(q.shape);
    ops::attention(s, {.q = q,
                       .cache = b.cache,
                       .seq = {b.seq.q_start, b.seq.kv_len, b.seq.pages},
                       .y = y,
                       .scale = 0.1f,
                       .window = 1});
    for (const float v : values_of(s, y)) all.push_back(v);
    return a.raw(all.data(), DType::f32, {static_cast<int64_t>(all.size())});
}

}  // namespace

TEST(RopeAppend, EqualsItsParts) {
    for (const Case& c :
         {Case{}, Case{.norms = true}, Case{.dim = 80, .rotated = 20},
          Case{.style = RopeStyle::gptj},
          Case{.heads = 3, .kv_heads = 3, .dim = 128, .rotated = 96, .norms = true, .beta = 0.1f},
          Case{.rotated = 0}, Case{.dim = 32, .rotated = 32, .bits = {8, 8}}})
        expect_same_on_all_devices({.rtol = 4e-6, .gpu_rtol = 1e-3},
                                   [&](Stream& s, Arena& a) { return turned(s, a, c); });
}

}  // namespace exl3::test
