#include <limits>

#include "support/devices.h"

namespace exl3::test {
namespace {

/// A batch of sequences with past tokens, each with a slot of its own, in an odd order.
struct SlotBatch {
    SlotsView seq;
    int64_t tokens = 0, slots = 0;
    /// @param counts  rows of each sequence  @param past  tokens before them
    SlotBatch(Arena& a, const std::vector<int32_t>& counts, const std::vector<int32_t>& past) {
        const auto n = static_cast<int64_t>(counts.size());
        slots = n + 2 + (n + 1) % 2;  // odd, so that 2 i + 1 meets every slot once
        std::vector<int32_t> start = {0}, length, slot;
        for (size_t i = 0; i < counts.size(); ++i) {
            start.push_back(start.back() + counts[i]);
            length.push_back(past[i] + counts[i]);
            slot.push_back(static_cast<int32_t>((2 * static_cast<int64_t>(i) + 1) % slots));
        }
        tokens = start.back();
        seq = {a.ints(start, {n + 1}), a.ints(length, {n}), a.ints(slot, {n})};
    }
};

/// Columns [begin, begin + count) of a (rows, dim) view.
View columns(View v, int64_t begin, int64_t count) {
    v.data = v.as<float>() + begin;
    v.shape = {v.shape[0], count};
    return v;
}

/// Both results in one view, so that one comparison sees both.
View together(Arena& a, const View& x, const View& y) {
    const View all = a.zeros({x.shape.numel() + y.shape.numel()});
    float* to = all.as<float>();
    for (const View& v : {x, y})
        for (int64_t r = 0; r < v.rows(); ++r) to = std::copy_n(v.row<float>(r), v.shape[-1], to);
    return all;
}

struct Recurrence {
    int key_heads = 1, heads = 1, key_dim = 1, value_dim = 1;
    bool delta = true;
};

// Inputs stand side by side in wider rows, as the models have them.
View run(Stream& s, Arena& a, const Recurrence& r, const SlotBatch& b, float strongest = 1) {
    const int64_t keys = int64_t{r.key_heads} * r.key_dim, values = int64_t{r.heads} * r.value_dim;
    const View qkv = a.normal({b.tokens, 2 * keys + values + 3});
    const View gates = a.normal({b.tokens, 2 * r.heads});
    for (int64_t i = 0; i < b.tokens; ++i)
        for (int64_t h = 0; h < r.heads; ++h) {
            float* g = gates.row<float>(i) + h;
            *g = -strongest * *g * *g;
            g[r.heads] = 1 / (1 + std::exp(-g[r.heads]));
        }
    const View y = a.zeros({b.tokens, values});
    const View memory = a.normal({b.slots, r.heads, r.key_dim, r.value_dim});
    const View skip = r.delta ? View() : a.normal({r.heads});
    ops::recurrence(s, {.q = columns(qkv, 0, keys),
                        .k = columns(qkv, keys, keys),
                        .v = columns(qkv, 2 * keys, values),
                        .log_decay = columns(gates, 0, r.heads),
                        .write = columns(gates, r.heads, r.heads),
                        .skip = skip,
                        .y = y,
                        .memory = memory,
                        .seq = b.seq,
                        .key_heads = r.key_heads,
                        .delta = r.delta,
                        .normalize_eps = r.delta ? 1e-6f : 0,
                        .scale = r.delta ? 1 / std::sqrt(static_cast<float>(r.key_dim)) : 1});
    return together(a, y, memory);
}

const Recurrence kShapes[] = {{1, 1, 1, 1, true},    {2, 4, 128, 128, true}, {2, 2, 64, 128, true},
                              {3, 6, 33, 50, true},  {1, 3, 7, 200, true},   {1, 2, 12, 16, true},
                              {2, 8, 64, 32, false}, {1, 2, 128, 64, false}, {2, 4, 31, 17, false}};

}  // namespace

TEST(LinearRecurrence, ChunksAndStepsMatchTheReference) {
    for (const Recurrence& r : kShapes)
        for (const auto& [counts, past] :
             {std::pair<std::vector<int32_t>, std::vector<int32_t>>{{1}, {0}},
              {{1, 1, 1}, {5, 0, 9}},
              {{7, 8, 9}, {0, 3, 0}},
              {{33, 0, 100, 2}, {0, 4, 12, 1}}})
            // Errors of the delta rule feed back into the state; f32 keeps five digits of them.
            expect_same_on_all_devices({.rtol = 5e-5}, [&](Stream& s, Arena& a) {
                return run(s, a, r, SlotBatch(a, counts, past));
            });
}

TEST(LinearRecurrence, DecaysFromNoneToAllAtOnce) {
    for (const float strongest : {0.0f, 1e-4f, 50.0f, 1e4f})
        for (const bool delta : {false, true})
            expect_same_on_all_devices({.rtol = 5e-5}, [&](Stream& s, Arena& a) {
                return run(s, a, {1, 2, 16, 16, delta}, SlotBatch(a, {70}, {3}), strongest);
            });
}

TEST(LinearRecurrence, SlotsOfOtherSequencesStayAsTheyAre) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 3);
        const SlotBatch b(a, {40}, {2});
        const View memory = a.normal({b.slots, 2, 8, 8});
        const std::vector<float> before(memory.as<float>(),
                                        memory.as<float>() + memory.shape.numel());
        const View x = a.normal({40, 16}), gate = a.zeros({40, 2}), y = a.zeros({40, 16});
        ops::recurrence(*stream, {.q = columns(x, 0, 8),
                                  .k = columns(x, 8, 8),
                                  .v = x,
                                  .log_decay = gate,
                                  .write = gate,
                                  .y = y,
                                  .memory = memory,
                                  .seq = b.seq,
                                  .key_heads = 1});
        // Nothing is written and nothing decays: the state of the sequence stays too.
        EXPECT_EQ(std::vector<float>(memory.as<float>(), memory.as<float>() + before.size()),
                  before)
            << name;
    }
}

TEST(LinearRecurrence, AFreshSequenceIgnoresWhatTheSlotHeld) {
    for (const int32_t count : {1, 5, 64})
        for (auto& [name, device] : all_devices()) {
            const auto stream = device->make_stream();
            Arena a(*device, *stream, 3);
            const SlotBatch b(a, {count}, {0});
            const View x = a.normal({count, 8}), gate = a.zeros({count, 1}),
                       y = a.zeros({count, 8});
            const View memory = a.zeros({b.slots, 1, 8, 8});
            for (int64_t i = 0; i < memory.shape.numel(); ++i)
                memory.as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
            ops::recurrence(*stream, {.q = x,
                                      .k = x,
                                      .v = x,
                                      .log_decay = gate,
                                      .write = gate,
                                      .y = y,
                                      .memory = memory,
                                      .seq = b.seq,
                                      .key_heads = 1,
                                      .delta = true});
            for (int64_t i = 0; i < y.shape.numel(); ++i) ASSERT_EQ(y.as<float>()[i], 0) << name;
        }
}

TEST(RecurrenceGates, MatchTheDefinition) {
    expect_same_on_all_devices({}, [&](Stream& s, Arena& a) {
        const View decay = a.zeros({5, 3}), write = a.zeros({5, 3});
        const View x = a.normal({5, 3}, DType::f32, 10), b = a.normal({5, 3});
        const View a_log = a.normal({3}), bias = a.normal({3});
        ops::recurrence_gates(s, {.a = x,
                                  .b = b,
                                  .a_log = a_log,
                                  .step_bias = bias,
                                  .log_decay = decay,
                                  .write = write,
                                  .write_scale = 2,
                                  .step_max = std::numeric_limits<float>::infinity()});
        for (int64_t t = 0; t < 5; ++t)
            for (int64_t h = 0; h < 3; ++h) {
                const double in = x.row<float>(t)[h] + bias.as<float>()[h];
                const double step = std::log(1 + std::exp(in));
                const double want = -std::exp(a_log.as<float>()[h]) * step;
                EXPECT_NEAR(decay.row<float>(t)[h], want, 1e-4 * std::fabs(want) + 1e-6);
                EXPECT_NEAR(write.row<float>(t)[h], 2 / (1 + std::exp(-b.row<float>(t)[h])), 1e-5);
            }
        ops::recurrence_gates(s, {.a = x,
                                  .a_log = a_log,
                                  .step_bias = bias,
                                  .log_decay = decay,
                                  .write = write,
                                  .step_min = 0.1f,
                                  .step_max = 3});
        for (int64_t i = 0; i < 15; ++i) {
            EXPECT_GE(write.as<float>()[i], 0.1f);
            EXPECT_LE(write.as<float>()[i], 3);
        }
        return together(a, decay, write);
    });
}

TEST(CausalConv, MatchesReference) {
    for (const int64_t kernel : {2, 3, 4, 7})
        for (const int64_t channels : {1, 17, 128, 300})
            for (const int gates : {0, 1, 2})
                expect_same_on_all_devices({.rtol = 2e-6}, [&](Stream& s, Arena& a) {
                    const SlotBatch b(a, {1, 5, 0, 2, 40}, {0, 0, 4, 7, 1});
                    const View wide = a.normal({b.tokens, 3 * channels});
                    const View y = a.zeros({b.tokens, channels});
                    const View window = a.normal({b.slots, kernel - 1, channels});
                    ops::causal_conv(
                        s, {.x = columns(wide, 0, channels),
                            .gate_in =
                                gates ? ConstView(columns(wide, channels, channels)) : ConstView(),
                            .gate_out = gates > 1 ? ConstView(columns(wide, 2 * channels, channels))
                                                  : ConstView(),
                            .weight = a.normal({kernel, channels}),
                            .bias = gates ? ConstView() : ConstView(a.normal({channels})),
                            .y = y,
                            .window = window,
                            .seq = b.seq,
                            .silu = gates == 0});
                    return together(a, y, window);
                });
}

TEST(CausalConv, PiecesOfASequenceEqualTheWhole) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 3);
        const View x = a.normal({23, 9}), weight = a.normal({4, 9});
        const View whole = a.zeros({23, 9}), pieces = a.zeros({23, 9}), window = a.zeros({3, 3, 9});
        const auto conv = [&](int64_t begin, int64_t count, const View& y) {
            const SlotBatch b(a, {static_cast<int32_t>(count)}, {static_cast<int32_t>(begin)});
            ops::causal_conv(*stream, {.x = slice_rows(x, begin, count),
                                       .weight = weight,
                                       .y = slice_rows(y, begin, count),
                                       .window = window,
                                       .seq = b.seq});
        };
        conv(0, 23, whole);
        for (const auto& [begin, count] : {std::pair{0, 1}, {1, 1}, {2, 9}, {11, 2}, {13, 10}})
            conv(begin, count, pieces);
        for (int64_t i = 0; i < whole.shape.numel(); ++i)
            ASSERT_EQ(whole.as<float>()[i], pieces.as<float>()[i]) << name << ", element " << i;
    }
}

TEST(SplitGroups, TakesGroupsApart) {
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena a(*device, *stream, 1);
        const View x = a.zeros({2, 10}), one = a.zeros({2, 4}), two = a.zeros({2, 6});
        for (int i = 0; i < 20; ++i) x.as<float>()[i] = static_cast<float>(i);
        ops::split_groups(*stream, {.x = x, .parts = {one, two}, .groups = 2});
        EXPECT_EQ(std::vector<float>(one.as<float>(), one.as<float>() + 8),
                  (std::vector<float>{0, 1, 5, 6, 10, 11, 15, 16}))
            << name;
        EXPECT_EQ(std::vector<float>(two.as<float>(), two.as<float>() + 12),
                  (std::vector<float>{2, 3, 4, 7, 8, 9, 12, 13, 14, 17, 18, 19}))
            << name;
    }
}

}  // namespace exl3::test
