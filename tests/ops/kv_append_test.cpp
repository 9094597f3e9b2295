#include "support/sequences.h"

namespace exl3::test {
namespace {

// The bits of a cache as numbers, those of unwritten tokens included.
View bits_of(Stream& s, Arena& a, const KvView& cache) {
    std::vector<float> bits;
    for (const View& v : {cache.k, cache.v, cache.k_scale, cache.v_scale}) {
        if (!v) continue;
        std::vector<uint16_t> host(static_cast<size_t>(v.shape.numel()) * size_of(v.dtype) / 2);
        s.copy(v, dense(host.data(), v.dtype, v.shape));
        s.synchronize();
        bits.insert(bits.end(), host.begin(), host.end());
    }
    return a.raw(bits.data(), DType::f32, {static_cast<int64_t>(bits.size())});
}

}  // namespace

TEST(KvAppend, WritesTheBitsOfTheReference) {
    for (const int64_t dim : {1, 7, 64, 80})
        for (const int64_t heads : {1, 3})
            for (const double scale : {1e-6, 1.0, 3e4})  // subnormal, usual and clamped values
                expect_same_on_all_devices({.rtol = 0}, [&](Stream& s, Arena& a) {
                    const PagedBatch b =
                        paged_batch(a, {{1, 255}, {0, 0}, {5, 254}, {1, 0}, {270, 3}}, heads, dim);
                    const Shape shape{b.tokens, heads, dim};
                    ops::kv_append(s, {.k = a.normal(shape, DType::f32, scale),
                                       .v = a.normal(shape, DType::f32, scale),
                                       .seq = b.seq,
                                       .cache = b.cache});
                    return bits_of(s, a, b.cache);
                });
}

TEST(KvAppend, QuantizesToTheBitsOfTheReference) {
    for (int bits = 2; bits <= 8; ++bits)
        for (const int64_t dim : {32, 96, 128})
            for (const double scale : {0.0, 1e-6, 1.0, 3e4})
                expect_same_on_all_devices({.rtol = 0}, [&](Stream& s, Arena& a) {
                    const PagedBatch b = paged_batch(a, {{1, 255}, {0, 0}, {5, 254}, {1, 0}}, 3,
                                                     dim, {bits, bits == 5 ? 16 : 10 - bits});
                    const Shape shape{b.tokens, 3, dim};
                    ops::kv_append(s, {.k = a.normal(shape, DType::f32, scale),
                                       .v = a.normal(shape, DType::f32, scale),
                                       .seq = b.seq,
                                       .cache = b.cache});
                    return bits_of(s, a, b.cache);
                });
}

}  // namespace exl3::test
