#include "support/devices.h"

namespace exl3::test {

TEST(Softcap, MatchesReference) {
    for (const Shape x : {Shape{1, 1}, {3, 7}, {64, 130}, {2, 5003}})
        for (const double scale : {0.01, 20.0, 400.0})
            expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
                const View y = a.normal(x, DType::f32, scale);
                ops::softcap(s, {.x = y, .cap = 30});
                return y;
            });
}

}  // namespace exl3::test
