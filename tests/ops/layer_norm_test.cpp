#include "support/devices.h"

namespace exl3::test {

TEST(LayerNorm, MatchesReference) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const Shape x : {Shape{1, 1}, {3, 7}, {64, 4096}, {2, 5003}})
            for (const bool bias : {false, true})
                expect_same_on_all_devices({.rtol = 2e-5}, [&](Stream& s, Arena& a) {
                    const View y = a.zeros(x);
                    ops::layer_norm(s, {.x = a.normal(x),
                                        .weight = a.normal({x[1]}, dtype),
                                        .bias = bias ? a.normal({x[1]}) : View{},
                                        .y = y,
                                        .eps = 1e-5f});
                    return y;
                });
}

TEST(LayerNorm, RowsTakeTurnsWithTheirWeights) {
    expect_same_on_all_devices({.rtol = 2e-5}, [&](Stream& s, Arena& a) {
        const View y = a.zeros({12, 65});
        ops::layer_norm(
            s, {.x = a.normal({12, 65}), .weight = a.normal({4, 65}), .y = y, .eps = 1e-5f});
        return y;
    });
}

}  // namespace exl3::test
