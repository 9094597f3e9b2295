#include "support/devices.h"

namespace exl3::test {

TEST(Linear, MatchesReference) {
    struct Case {
        int64_t rows, in, out;
    };
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const auto& [rows, in, out] : {Case{1, 1, 1},
                                            {1, 64, 32},
                                            {1, 517, 331},
                                            {2, 7, 3},
                                            {3, 130, 37},
                                            {4, 16, 8},
                                            {5, 1031, 67},
                                            {6, 512, 33},
                                            {7, 513, 31},
                                            {13, 1100, 65},
                                            {64, 96, 128}})
            for (const bool bias : {false, true})
                expect_same_on_all_devices({.rtol = 2e-6}, [&](Stream& s, Arena& a) {
                    const View y = a.normal({rows, out});
                    ops::linear(s, {.x = a.normal({rows, in}),
                                    .weight = a.normal({out, in}, dtype),
                                    .bias = bias ? ConstView(a.normal({out}, dtype)) : ConstView{},
                                    .y = y});
                    return y;
                });
}

TEST(Linear, ReadsAndWritesRowsThatAreNotAdjacent) {
    expect_same_on_all_devices({.rtol = 2e-6}, [&](Stream& s, Arena& a) {
        View x = a.normal({5, 100}), w = a.normal({11, 90}, DType::f16), y = a.zeros({5, 40});
        x.shape = {5, 77};
        w.shape = {11, 77};
        const View all = y;
        y.shape = {5, 11};
        ops::linear(s, {.x = x, .weight = w, .y = y});
        return all;  // the columns beside y stay zero
    });
}

// A row's result is the same bits whatever rows share the call, on one thread or several.
TEST(Linear, RowsDoNotDependOnTheBatch) {
    constexpr int64_t kRows = 15, kIn = 1300, kOut = 77;
    for (auto& [name, device] : all_devices()) {
        if (name == "ref") continue;
        const auto stream = device->make_stream();
        for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
            Arena arena(*device, *stream, 7);
            const View x = arena.normal({kRows, kIn}), w = arena.normal({kOut, kIn}, dtype);
            const View all = arena.zeros({kRows, kOut}), one = arena.zeros({1, kOut});
            ops::linear(*stream, {.x = x, .weight = w, .y = all});
            const std::vector<float> together = values_of(*stream, all);
            for (int64_t r = 0; r < kRows; ++r) {
                ops::linear(*stream, {.x = slice_rows(x, r, 1), .weight = w, .y = one});
                const std::vector<float> alone = values_of(*stream, one);
                for (int64_t j = 0; j < kOut; ++j)
                    ASSERT_EQ(together[static_cast<size_t>(r * kOut + j)],
                              alone[static_cast<size_t>(j)])
                        << name << " row " << r;
            }
        }
    }
}

}  // namespace exl3::test
