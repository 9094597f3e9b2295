#include "support/sequences.h"

namespace exl3::test {
namespace {

struct Case {
    std::vector<Rows> sequences;
    int64_t heads = 4, kv_heads = 2, dim = 64;
    float softcap = 0;
    int window = 0;
    bool sinks = false;
    KvBits bits{};
    double rtol = 4e-6;
    double gpu_rtol = 2e-3;  // queries and weights of the values are f16 there, save when decoding
};

void expect_attention_same(const Case& c) {
    expect_same_on_all_devices({.rtol = c.rtol, .gpu_rtol = c.gpu_rtol}, [&](Stream& s, Arena& a) {
        const PagedBatch b = paged_batch(a, c.sequences, c.kv_heads, c.dim, c.bits);
        fill_cache(s, a, b);
        const Shape shape{b.tokens, c.heads, c.dim};
        const View y = a.zeros(shape);
        ops::attention(s, {.q = a.normal(shape),
                           .cache = b.cache,
                           .seq = b.seq,
                           .y = y,
                           .scale = 1 / std::sqrt(static_cast<float>(c.dim)),
                           .softcap = c.softcap,
                           .window = c.window,
                           .sinks = c.sinks ? ConstView(a.normal({c.heads})) : ConstView{}});
        return y;
    });
}

}  // namespace

TEST(Attention, DecodesOneRowPerSequence) {
    for (const int64_t dim : {64, 80, 96, 112, 128, 256})
        expect_attention_same(
            {.sequences = {{1, 0}, {1, 255}, {1, 256}, {1, 700}}, .dim = dim, .gpu_rtol = 1e-5});
}

TEST(Attention, PrefillsUnevenSequences) {
    for (const int64_t dim : {64, 80, 96, 112, 128, 256})
        expect_attention_same({.sequences = {{2, 0}, {33, 0}, {7, 250}, {61, 19}}, .dim = dim});
}

TEST(Attention, MixesPrefillAndDecode) {
    for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {3, 3}, {6, 2}, {8, 1}, {14, 2}, {9, 3}})
        expect_attention_same({.sequences = {{1, 300}, {50, 0}, {1, 4}, {0, 9}, {3, 257}},
                               .heads = heads,
                               .kv_heads = kv_heads});
}

TEST(Attention, HeadDimensionsThatNoVectorDivides) {
    for (const int64_t dim : {1, 3, 7, 20, 100, 130, 260})
        expect_attention_same({.sequences = {{1, 40}, {19, 2}, {70, 3}}, .heads = 2, .dim = dim});
}

TEST(Attention, WindowSoftcapAndSinks) {
    for (const int window : {0, 1, 5, 48, 300})
        for (const float softcap : {0.0f, 2.0f})
            for (const bool sinks : {false, true})
                expect_attention_same({.sequences = {{1, 610}, {70, 280}, {1, 0}, {5, 90}},
                                       .heads = 4,
                                       .kv_heads = 1,
                                       .dim = 32,
                                       .softcap = softcap,
                                       .window = window,
                                       .sinks = sinks});
}

// Contexts long enough to be cut along the keys, with one row, a few and many.
TEST(Attention, LongContextsAreCutAndMerged) {
    for (const int window : {0, 900})
        for (const bool sinks : {false, true})
            expect_attention_same(
                {.sequences = {{1, 4500}, {3, 2200}, {1, 100}, {1, 1023}, {50, 4080}},
                 .heads = 2,
                 .kv_heads = 1,
                 .dim = 32,
                 .window = window,
                 .sinks = sinks});
}

// Decode, prefill and cut contexts over a quantized cache.
TEST(Attention, QuantizedCache) {
    for (int bits = 2; bits <= 8; ++bits)
        for (const int64_t dim : {32, 64, 96, 128})
            expect_attention_same({.sequences = {{1, 0}, {1, 300}, {36, 19}, {2, 560}},
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .dim = dim,
                                   .window = dim == 96 ? 100 : 0,
                                   .sinks = dim == 64,
                                   .bits = {bits, 10 - bits},
                                   .rtol = 1e-5});
    for (const KvBits bits : {KvBits{16, 4}, KvBits{6, 16}, KvBits{8, 8}})
        expect_attention_same({.sequences = {{1, 700}, {70, 19}}, .dim = 64, .bits = bits});
}

// Logits of several hundred: only the running maximum keeps the exponentials finite.
TEST(Attention, LargeLogits) {
    expect_same_on_all_devices({.rtol = 2e-4, .gpu_rtol = 0.5}, [&](Stream& s, Arena& a) {
        const PagedBatch b = paged_batch(a, {{1, 200}, {30, 50}}, 1, 64);
        fill_cache(s, a, b, 20);
        const View y = a.zeros({31, 2, 64});
        ops::attention(s, {.q = a.normal({31, 2, 64}, DType::f32, 20),
                           .cache = b.cache,
                           .seq = b.seq,
                           .y = y,
                           .scale = 0.125f});
        return y;
    });
}

// A prompt given in pieces, each appended and attended to, equals the prompt in one pass.
TEST(Attention, PrefillInChunksEqualsOnePass) {
    constexpr int kTokens = 330, kHeads = 4, kKvHeads = 2, kDim = 48;
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 5);
        const View q = a.normal({kTokens, kHeads, kDim}), k = a.normal({kTokens, kKvHeads, kDim});
        const View v = a.normal({kTokens, kKvHeads, kDim});
        const auto attend = [&](const std::vector<int>& cuts) {
            const View y = a.zeros({kTokens, kHeads, kDim});
            const PagedBatch b = paged_batch(a, {{kTokens, 0}}, kKvHeads, kDim);
            const auto rows = [](View x, int begin, int count) {
                x.data = x.as<float>() + begin * x.shape[1] * x.shape[2];
                x.shape.dim[0] = count;
                return x;
            };
            int begin = 0;
            for (const int end : cuts) {
                SequencesView seq = b.seq;
                seq.q_start = a.ints({0, end - begin}, {2});
                seq.kv_len = a.ints({end}, {1});
                ops::kv_append(*stream, {.k = rows(k, begin, end - begin),
                                         .v = rows(v, begin, end - begin),
                                         .seq = seq,
                                         .cache = b.cache});
                ops::attention(*stream, {.q = rows(q, begin, end - begin),
                                         .cache = b.cache,
                                         .seq = seq,
                                         .y = rows(y, begin, end - begin),
                                         .scale = 0.15f,
                                         .window = 200});
                begin = end;
            }
            return y;
        };
        const View whole = attend({kTokens}),
                   parts = attend({1, 2, 50, 53, 255, 256, 257, kTokens});
        const std::vector<float> want = values_of(*stream, whole), got = values_of(*stream, parts);
        // On a GPU a row is worth fewer bits among many than by itself.
        for (size_t i = 0; i < want.size(); ++i)
            ASSERT_NEAR(want[i], got[i], is_gpu(name) ? 2e-3 : 2e-6) << name << " at " << i;
    }
}

// Verifying several drafted tokens at once gives the bits of decoding them one by one.
TEST(Attention, AFewRowsEqualOneByOne) {
    constexpr int kRows = 12, kHeads = 4, kDim = 40;
    for (auto& [name, device] : all_devices()) {
        if (name == "ref") continue;
        const auto stream = device->make_stream();
        for (const int past : {0, 505, 1020})
            for (const int window : {0, 100}) {
                Arena a(*device, *stream, 9);
                const PagedBatch b = paged_batch(a, {{kRows, past}}, 1, kDim);
                fill_cache(*stream, a, b);
                const View q = a.normal({kRows, kHeads, kDim}), all = a.zeros(q.shape);
                AttentionArgs args{.q = q,
                                   .cache = b.cache,
                                   .seq = b.seq,
                                   .y = all,
                                   .scale = 0.2f,
                                   .window = window};
                ops::attention(*stream, args);
                const std::vector<float> together = values_of(*stream, all);
                const View one = a.zeros({1, kHeads, kDim});
                for (int r = 0; r < kRows; ++r) {
                    args.q = dense(q.row<float>(r * kHeads), DType::f32, one.shape);
                    args.y = one;
                    args.seq.q_start = a.ints({0, 1}, {2});
                    args.seq.kv_len = a.ints({past + r + 1}, {1});
                    ops::attention(*stream, args);
                    const std::vector<float> alone = values_of(*stream, one);
                    for (size_t i = 0; i < alone.size(); ++i)
                        ASSERT_EQ(alone[i], together[static_cast<size_t>(r) * alone.size() + i])
                            << name << ", " << past << " cached, window " << window << ", row "
                            << r;
                }
            }
    }
}

TEST(Attention, ThreadsDoNotChangeTheResult) {
    std::vector<float> want;
    for (const int threads : {1, 2, 5}) {
        const auto device = cpu::open({.threads = threads});
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 3);
        const PagedBatch b = paged_batch(a, {{1, 2000}, {90, 10}, {4, 3000}}, 2, 64);
        fill_cache(*stream, a, b);
        const View y = a.zeros({b.tokens, 4, 64});
        ops::attention(*stream, {.q = a.normal(y.shape), .cache = b.cache, .seq = b.seq, .y = y});
        const std::vector<float> got = values_of(*stream, y);
        if (want.empty()) want = got;
        EXPECT_EQ(got, want) << threads << " threads";
    }
}

}  // namespace exl3::test
