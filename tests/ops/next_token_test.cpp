#include "support/devices.h"

namespace exl3::test {
namespace {

std::vector<int32_t> ints_of(Stream& s, const View& v) {
    std::vector<int32_t> out(static_cast<size_t>(v.shape.numel()));
    s.copy(v, dense(out.data(), DType::i32, v.shape));
    s.synchronize();
    return out;
}

}  // namespace

TEST(NextToken, PicksTheFirstOfTheLargestAndMovesOn) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 3);
        for (const int64_t vocab : {1, 7, 1000, 128256}) {
            constexpr int64_t kRows = 5;
            std::vector<float> x(static_cast<size_t>(kRows * vocab));
            for (float& v : x) v = static_cast<float>(a.random().normal());
            const auto at = [&](int64_t row, int64_t i) -> float& {
                return x[static_cast<size_t>(row * vocab + i)];
            };
            at(0, vocab - 1) = 9;
            at(1, vocab / 2) = at(1, vocab - 1) = 9;
            for (int64_t i = 0; i < vocab; ++i) at(2, i) = -INFINITY;
            for (int64_t i = 0; i < vocab; ++i) at(3, i) = -static_cast<float>(i % 3) - 1;
            for (int64_t i = 0; i < vocab; ++i) at(4, i) = i == vocab / 3 ? -5.0f : NAN;
            const std::vector<int32_t> want = {static_cast<int32_t>(vocab - 1),
                                               static_cast<int32_t>(vocab / 2), 0, 0,
                                               static_cast<int32_t>(vocab / 3)};
            const View tokens = a.ints({0, 0, 0, 0, 0}, {kRows});
            const View positions = a.ints({0, 1, 2, 3, 10}, {kRows});
            const View lengths = a.ints({1, 2, 3, 4, 5}, {kRows});
            const View log = a.ints(std::vector<int32_t>(20, -1), {4, kRows});
            const View logits = a.raw(x.data(), DType::f32, {kRows, vocab});
            // Twice: what a step leaves behind does not disturb the next.
            for (int step = 0; step < 2; ++step)
                ops::next_token(*stream, {.logits = logits,
                                          .tokens = tokens,
                                          .positions = positions,
                                          .kv_len = lengths,
                                          .log = log});
            EXPECT_EQ(ints_of(*stream, tokens), want) << name << ", vocab " << vocab;
            EXPECT_EQ(ints_of(*stream, positions), (std::vector<int32_t>{2, 3, 4, 5, 12}));
            EXPECT_EQ(ints_of(*stream, lengths), (std::vector<int32_t>{3, 4, 5, 6, 7}));
            const std::vector<int32_t> rows = ints_of(*stream, log);
            EXPECT_EQ(rows[0], want[0]);          // position 0
            EXPECT_EQ(rows[5], want[0]);          // position 1
            EXPECT_EQ(rows[1 * 5 + 1], want[1]);  // position 1
            EXPECT_EQ(rows[2 * 5 + 4], want[4]);  // position 10
            EXPECT_EQ(rows[3 * 5 + 4], want[4]);  // position 11
            EXPECT_EQ(rows[0 * 5 + 1], -1);
        }
    }
}

// A captured step runs again with what the run before left in memory.
TEST(NextToken, CapturedStepsFollowEachOther) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 3);
        const View x = a.normal({3, 64}), y = a.zeros({3, 64});
        const View tokens = a.ints({0, 0, 0}, {3}), positions = a.ints({0, 0, 0}, {3});
        const View lengths = a.ints({1, 1, 1}, {3});
        const View log = a.ints(std::vector<int32_t>(24, -1), {8, 3});
        const auto graph = stream->capture([&] {
            ops::add(*stream, {.x = x, .y = y});
            ops::next_token(*stream, {.logits = y,
                                      .tokens = tokens,
                                      .positions = positions,
                                      .kv_len = lengths,
                                      .log = log});
        });
        for (int i = 0; i < 4; ++i) graph->launch();
        EXPECT_EQ(ints_of(*stream, positions), (std::vector<int32_t>{5, 5, 5})) << name;
        const std::vector<float> once = values_of(*stream, x), sum = values_of(*stream, y);
        for (size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(sum[i], 5 * once[i], 1e-5) << name;
    }
}

}  // namespace exl3::test
