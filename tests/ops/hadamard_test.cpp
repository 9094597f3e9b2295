#include "trellis/hadamard.h"
#include "support/devices.h"

namespace exl3::test {

TEST(Hadamard, MatchesReference) {
    for (const auto& [rows, dim] :
         {std::pair<int64_t, int64_t>{1, 128}, {3, 256}, {67, 640}, {1, 128 * 300}})
        expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
            const View x = a.normal({rows, dim});
            ops::hadamard(s, {.x = x});
            return x;
        });
    for (const auto& [rows, dim] :
         {std::pair<int64_t, int64_t>{128, 1}, {256, 7}, {384, 64}, {128, 131}, {640, 200}})
        expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
            const View x = a.normal({rows, dim});
            ops::hadamard(s, {.x = x, .columns = true});
            return x;
        });
}

TEST(Hadamard, TouchesOnlyTheColumnsOfItsView) {
    for (const bool columns : {false, true})
        expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
            const View all = a.normal({128, 150});
            View x = all;
            x.shape = {128, 128};
            ops::hadamard(s, {.x = x, .columns = columns});
            return all;
        });
}

// Every column of H: entry (i, j) is (-1)^popcount(i & j) / sqrt(128).
TEST(Hadamard, IsTheSylvesterMatrix) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        for (const bool columns : {false, true}) {
            Arena a(*device, *stream, 1);
            std::vector<float> unit(size_t{kHadamard} * kHadamard);
            for (size_t i = 0; i < kHadamard; ++i) unit[i * kHadamard + i] = 1;
            const View x = a.raw(unit.data(), DType::f32, {kHadamard, kHadamard});
            ops::hadamard(*stream, {.x = x, .columns = columns});
            const std::vector<float> got = values_of(*stream, x);
            for (int i = 0; i < kHadamard; ++i)
                for (int j = 0; j < kHadamard; ++j)
                    ASSERT_FLOAT_EQ(got[static_cast<size_t>(i * kHadamard + j)],
                                    std::popcount(static_cast<unsigned>(i & j)) % 2
                                        ? -kHadamardScale
                                        : kHadamardScale)
                        << name;
        }
    }
}

TEST(Hadamard, IsItsOwnInverse) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 1);
        const View x = a.normal({256, 384});
        const std::vector<float> before = values_of(*stream, x);
        for (const bool columns : {false, true, true, false})
            ops::hadamard(*stream, {.x = x, .columns = columns});
        const std::vector<float> after = values_of(*stream, x);
        for (size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(after[i], before[i], 4e-6) << name;
    }
}

}  // namespace exl3::test
