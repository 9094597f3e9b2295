#include "support/devices.h"

namespace exl3::test {
namespace {

constexpr Act kActs[] = {Act::silu, Act::gelu, Act::gelu_tanh, Act::relu2};

}  // namespace

TEST(GatedAct, MatchesReference) {
    for (const Act act : kActs)
        for (const Shape x : {Shape{1, 1}, {3, 7}, {2, 5003}, {37, 130}})
            for (const bool gated : {true, false})
                expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
                    const View y = a.zeros(x);
                    ops::gated_act(s, {.gate = a.normal(x, DType::f32, 3),
                                       .up = gated ? ConstView(a.normal(x)) : ConstView{},
                                       .y = y,
                                       .act = act});
                    return y;
                });
}

TEST(GatedAct, MayWriteOverItsInputs) {
    for (const bool over_gate : {true, false})
        expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
            const View gate = a.normal({3, 77}), up = a.normal({3, 77});
            const View y = over_gate ? gate : up;
            ops::gated_act(s, {.gate = gate, .up = up, .y = y});
            return y;
        });
}

// Each value by itself: the negative tails are small but must not be lost to cancellation.
TEST(GatedAct, SmallResultsKeepTheirRelativeAccuracy) {
    constexpr int64_t kCount = 3001;
    std::vector<float> x(kCount);
    for (int64_t i = 0; i < kCount; ++i)
        x[static_cast<size_t>(i)] = static_cast<float>(i - kCount / 2) * 12.0f / (kCount / 2);
    const auto run = [&](Device& device, Act act) {
        const auto stream = device.make_stream();
        Arena a(device, *stream, 1);
        const View y = a.raw(x.data(), DType::f32, {1, kCount});
        ops::gated_act(*stream, {.gate = y, .y = y, .act = act});
        return values_of(*stream, y);
    };
    const auto ref = ref::open();
    for (const Act act : kActs) {
        // The reference of the tanh form, 0.5 x (1 + tanh z), cancels where tanh is near -1.
        const double from = act == Act::gelu_tanh ? -4 : act == Act::gelu ? -12 : -80;
        const std::vector<float> want = run(*ref, act);
        for (auto& [name, device] : all_devices()) {
            const std::vector<float> got = run(*device, act);
            // Without a fused multiply-add the rounding of x^2 stays in e^(-x^2 / 2).
            const double rtol = name == "cpu scalar" ? 8e-6 : 1e-6;
            for (size_t i = 0; i < kCount; ++i) {
                if (x[i] < from || std::fabs(want[i]) < 1e-37) continue;
                ASSERT_NEAR(got[i], want[i], rtol * std::fabs(want[i]))
                    << name << " act " << static_cast<int>(act) << " at " << x[i];
            }
        }
    }
}

TEST(GatedAct, ExtremeInputsStayInRange) {
    const std::vector<float> x = {-3e38f, -1e20f, -100, -0.0f, 0, 100, 1e15f};
    for (auto& [name, device] : all_devices())
        for (const Act act : {Act::silu, Act::gelu, Act::gelu_tanh}) {
            const auto stream = device->make_stream();
            Arena a(*device, *stream, 1);
            const View y = a.raw(x.data(), DType::f32, {1, static_cast<int64_t>(x.size())});
            ops::gated_act(*stream, {.gate = y, .y = y, .act = act});
            const std::vector<float> got = values_of(*stream, y);
            for (size_t i = 0; i < x.size(); ++i)
                EXPECT_NEAR(got[i], std::max(x[i], 0.0f), 1e-6 * std::fabs(x[i] > 0 ? x[i] : 1))
                    << name << " at " << x[i];
        }
}

TEST(GatedAct, LimitsAndActivationsWithNumbers) {
    for (const Act act : {Act::silu, Act::oai, Act::xielu})
        for (const ActClamp clamp : {ActClamp::before, ActClamp::after})
            for (const float limit : {0.0f, 1.5f})
                expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
                    const View y = a.zeros({3, 517});
                    ops::gated_act(s, {.gate = a.normal({3, 517}, DType::f32, 4),
                                       .up = a.normal({3, 517}, DType::f32, 4),
                                       .y = y,
                                       .act = act,
                                       .limit = limit,
                                       .clamp = clamp,
                                       .xielu = {.positive = 0.8f, .negative = 1.3f}});
                    return y;
                });
}

// gpt-oss: (up + 1) gate sigmoid(1.702 gate) with gate cut above and up on both sides.
TEST(GatedAct, OaiCutsAsGptOssDoes) {
    const auto device = ref::open();
    const auto s = device->make_stream();
    float gate[2] = {9, -3}, up[2] = {-9, 2}, y[2];
    const Shape shape = {1, 2};
    ops::gated_act(*s, {.gate = dense(gate, DType::f32, shape),
                        .up = dense(up, DType::f32, shape),
                        .y = dense(y, DType::f32, shape),
                        .act = Act::oai,
                        .limit = 7});
    EXPECT_NEAR(y[0], -6 * 7 / (1 + std::exp(-1.702 * 7)), 1e-4);
    EXPECT_NEAR(y[1], 3 * -3 / (1 + std::exp(1.702 * 3)), 1e-5);
}

}  // namespace exl3::test
