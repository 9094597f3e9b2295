#include "support/devices.h"

namespace exl3::test {
namespace {

struct Case {
    int64_t heads, dim, rotated;
};

View frequencies(Arena& a, int64_t half, double base) {
    std::vector<float> f(static_cast<size_t>(half));
    for (size_t i = 0; i < f.size(); ++i)
        f[i] =
            static_cast<float>(std::pow(base, -static_cast<double>(i) / static_cast<double>(half)));
    return a.raw(f.data(), DType::f32, {half});
}

View rotate(Stream& s, Arena& a, const std::vector<int32_t>& positions, Case c, RopeStyle style,
            float beta) {
    const auto tokens = static_cast<int64_t>(positions.size());
    const View x = a.normal({tokens, c.heads, c.dim});
    ops::rope(s, {.x = x,
                  .positions = a.ints(positions, {tokens}),
                  .inv_freq = frequencies(a, c.rotated / 2, 10000),
                  .style = style,
                  .attention_factor = 1.2f,
                  .query_scale_beta = beta,
                  .query_scale_length = 100});
    return x;
}

}  // namespace

TEST(Rope, MatchesReference) {
    for (const Case c :
         {Case{1, 2, 2}, {3, 8, 6}, {2, 64, 64}, {5, 80, 20}, {4, 128, 128}, {1, 99, 34}})
        for (const RopeStyle style : {RopeStyle::neox, RopeStyle::gptj})
            for (const float beta : {0.0f, 0.1f})
                expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
                    return rotate(s, a, {0, 1, 2, 77, 5000, 131072, 1048575, 16777216, 3}, c, style,
                                  beta);
                });
}

TEST(Rope, ManyTokens) {
    std::vector<int32_t> positions(300);
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i * 37);
    expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
        return rotate(s, a, positions, {7, 64, 64}, RopeStyle::neox, 0);
    });
}

// A rotation: the inner product of a query and a key depends on their distance alone.
TEST(Rope, InnerProductsDependOnTheDistance) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 2);
        const std::vector<float> ones(128, 1.0f);
        const auto dot = [&](int32_t query, int32_t key) {
            double sum = 0;
            const View x = a.raw(ones.data(), DType::f32, {2, 1, 64});
            ops::rope(*stream, {.x = x,
                                .positions = a.ints({query, key}, {2}),
                                .inv_freq = frequencies(a, 32, 1e6)});
            const std::vector<float> v = values_of(*stream, x);
            for (size_t i = 0; i < 64; ++i) sum += v[i] * v[64 + i];
            return sum;
        };
        for (const int32_t shift : {1, 100, 30000, 131072})
            EXPECT_NEAR(dot(17, 5), dot(17 + shift, 5 + shift), 1e-4) << name;
    }
}

}  // namespace exl3::test
