#include "support/devices.h"

namespace exl3::test {
namespace {

struct Case {
    int64_t m, n, k;
};

View product(Stream& s, Arena& a, Case c, bool transpose_a, bool transpose_b, bool lower,
             float alpha, float beta) {
    const View y = a.normal({c.m, c.n});
    ops::gemm(s, {.a = a.normal(transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}),
                  .b = a.normal(transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n}),
                  .c = y,
                  .transpose_a = transpose_a,
                  .transpose_b = transpose_b,
                  .alpha = alpha,
                  .beta = beta,
                  .lower = lower});
    return y;
}

}  // namespace

TEST(Gemm, MatchesReference) {
    for (const Case c : {Case{1, 1, 1},
                         {3, 7, 5},
                         {12, 32, 256},
                         {13, 33, 257},
                         {16, 200, 40},
                         {97, 16, 128},
                         {31, 101, 530},
                         {65, 64, 3},
                         {200, 17, 16}})
        for (const bool ta : {false, true})
            for (const bool tb : {false, true})
                expect_same_on_all_devices({.rtol = 2e-6}, [&](Stream& s, Arena& a) {
                    return product(s, a, c, ta, tb, false, -0.75f, 0.5f);
                });
}

TEST(Gemm, BetaZeroIgnoresWhatCHeld) {
    expect_same_on_all_devices({.rtol = 2e-6}, [&](Stream& s, Arena& a) {
        const std::vector<float> nan(size_t{37} * 41, NAN);
        const View y = a.raw(nan.data(), DType::f32, {37, 41});
        ops::gemm(s, {.a = a.normal({37, 300}), .b = a.normal({300, 41}), .c = y});
        return y;
    });
}

// Entries above the diagonal keep what they held, as in the reference.
TEST(Gemm, LowerLeavesTheUpperTriangleAlone) {
    for (const Case c : {Case{1, 1, 4}, {5, 5, 7}, {33, 33, 20}, {150, 150, 300}, {64, 64, 64}})
        for (const bool ta : {false, true})
            expect_same_on_all_devices({.rtol = 2e-6}, [&](Stream& s, Arena& a) {
                return product(s, a, c, ta, !ta, true, 1, 1);
            });
}

TEST(Gemm, WithoutDepthOnlyBetaActs) {
    expect_same_on_all_devices({}, [&](Stream& s, Arena& a) {
        const View y = a.normal({3, 5});
        const View x = a.zeros({5});
        ops::gemm(s, {.a = dense(x.data, DType::f32, {3, 0}),
                      .b = dense(x.data, DType::f32, {0, 5}),
                      .c = y,
                      .beta = 2});
        return y;
    });
}

TEST(Gemm, SubmatricesOfOneBuffer) {
    expect_same_on_all_devices({.rtol = 2e-6}, [&](Stream& s, Arena& a) {
        // A trailing update as in a blocked Cholesky factorization: C -= L L^T in one matrix.
        const View all = a.normal({70, 70});
        const auto part = [&](int64_t row, int64_t column, int64_t rows, int64_t columns) {
            View v = all;
            v.data = all.row<float>(row) + column;
            v.shape = {rows, columns};
            return v;
        };
        const View l = part(30, 0, 40, 30);
        ops::gemm(s, {.a = l,
                      .b = l,
                      .c = part(30, 30, 40, 40),
                      .transpose_b = true,
                      .alpha = -1,
                      .beta = 1,
                      .lower = true});
        return all;
    });
}

// The blocks follow the number of threads; the bits do not.
TEST(Gemm, ThreadsDoNotChangeTheResult) {
    std::vector<float> want;
    for (const int threads : {1, 2, 5}) {
        const auto device = cpu::open({.threads = threads});
        const auto stream = device->make_stream();
        Arena arena(*device, *stream, 3);
        const View y = product(*stream, arena, {210, 190, 600}, true, false, false, 1, 0);
        const std::vector<float> got = values_of(*stream, y);
        if (want.empty()) want = got;
        EXPECT_EQ(got, want) << threads << " threads";
    }
}

}  // namespace exl3::test
