#include "support/devices.h"

namespace exl3::test {

TEST(RmsNorm, MatchesReference) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const Shape x : {Shape{1, 1}, {3, 7}, {64, 4096}, {2, 5003}})
            expect_same_on_all_devices({.rtol = 1e-5}, [&](Stream& s, Arena& a) {
                const View y = a.zeros(x);
                ops::rms_norm(s, {.x = a.normal(x),
                                  .weight = a.normal({x[1]}, dtype),
                                  .y = y,
                                  .eps = 1e-6f,
                                  .weight_bias = 1});
                return y;
            });
}

TEST(RmsNorm, WithoutWeightTheMeanSquareIsOne) {
    expect_same_on_all_devices({}, [&](Stream& s, Arena& a) {
        const View y = a.zeros({5, 130});
        ops::rms_norm(s, {.x = a.normal({5, 130}, DType::f32, 1e4), .y = y, .eps = 1e-6f});
        double sum = 0;
        for (int i = 0; i < 130; ++i) sum += y.as<float>()[i] * y.as<float>()[i];
        EXPECT_NEAR(sum / 130, 1, 1e-5);
        return y;
    });
}

TEST(RmsNorm, RowsTakeTurnsWithSeveralWeights) {
    expect_same_on_all_devices({.rtol = 1e-5}, [&](Stream& s, Arena& a) {
        const View x = a.normal({12, 37}), weight = a.normal({3, 37}), y = a.zeros({12, 37});
        ops::rms_norm(s, {.x = x, .weight = weight, .y = y, .eps = 1e-6f});
        for (int64_t r = 0; r < 12; ++r) {
            double sum = 0;
            for (int64_t i = 0; i < 37; ++i) sum += x.row<float>(r)[i] * x.row<float>(r)[i];
            const double want =
                x.row<float>(r)[5] / std::sqrt(sum / 37) * weight.row<float>(r % 3)[5];
            EXPECT_NEAR(y.row<float>(r)[5], want, 1e-4);
        }
        return y;
    });
}

}  // namespace exl3::test
