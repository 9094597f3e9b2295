#include "support/sequences.h"

namespace exl3::test {
namespace {

// The bits of a cache as numbers, NaN of unwritten tokens included.
View bits_of(Arena& a, const KvView& cache) {
    const int64_t n = cache.k.shape.numel();
    std::vector<float> bits;
    for (const View& v : {cache.k, cache.v})
        for (int64_t i = 0; i < n; ++i) bits.push_back(v.as<f16>()[i].bits);
    return a.raw(bits.data(), DType::f32, {2, n});
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
                    return bits_of(a, b.cache);
                });
}

}  // namespace exl3::test
