#include "support/devices.h"

namespace exl3::test {

TEST(Add, MatchesReference) {
    for (const Shape x : {Shape{1, 1}, {3, 7}, {64, 130}, {2, 5003}})
        for (const float scale : {1.0f, -0.22f})
            expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
                const View y = a.normal(x);
                ops::add(s, {.x = a.normal(x), .y = y, .scale = scale});
                return y;
            });
}

TEST(Add, TouchesOnlyTheColumnsOfItsView) {
    expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
        const View all = a.normal({5, 40});
        View y = all;
        y.shape = {5, 33};
        ops::add(s, {.x = a.normal({5, 33}), .y = y});
        return all;
    });
}

}  // namespace exl3::test
