#include "support/devices.h"
#include "trellis/tile.h"

namespace exl3::test {
namespace {

struct Routed {
    std::vector<int32_t> chosen;
    std::vector<float> weight;
};

Routed route(const std::vector<float>& logits, int top_k, RouteArgs rules,
             const std::vector<float>& bias = {}, const std::vector<float>& expert_scale = {}) {
    const auto device = ref::open();
    const auto s = device->make_stream();
    const auto experts = static_cast<int64_t>(logits.size());
    Routed r{std::vector<int32_t>(static_cast<size_t>(top_k)),
             std::vector<float>(static_cast<size_t>(top_k))};
    rules.logits = dense(logits.data(), DType::f32, {1, experts});
    if (!bias.empty()) rules.bias = dense(bias.data(), DType::f32, {experts});
    if (!expert_scale.empty())
        rules.expert_scale = dense(expert_scale.data(), DType::f32, {experts});
    rules.chosen = dense(r.chosen.data(), DType::i32, {1, top_k});
    rules.weight = dense(r.weight.data(), DType::f32, {1, top_k});
    ops::route(*s, rules);
    return r;
}

float log_of(double x) {
    return static_cast<float>(std::log(x));
}
float logit_of(double p) {
    return static_cast<float>(std::log(p / (1 - p)));
}

TEST(Route, SoftmaxWeightsAreSharesOfAllExpertsOrOfTheChosen) {
    const std::vector<float> logits = {log_of(1), log_of(4), log_of(2), log_of(1)};
    const Routed plain = route(logits, 2, {.normalise = false});
    EXPECT_EQ(plain.chosen, (std::vector<int32_t>{1, 2}));
    EXPECT_NEAR(plain.weight[0], 0.5, 1e-6);
    EXPECT_NEAR(plain.weight[1], 0.25, 1e-6);
    const Routed shares = route(logits, 2, {.scale = 3}, {}, {1, 2, 1, 1});
    EXPECT_NEAR(shares.weight[0], 3.0 * 2 / 3 * 2, 1e-5);  // expert 1 counts double
    EXPECT_NEAR(shares.weight[1], 3.0 / 3, 1e-5);
}

TEST(Route, ACorrectionBiasChoosesButDoesNotWeigh) {
    const std::vector<float> logits = {logit_of(0.8), logit_of(0.5), logit_of(0.2), logit_of(0.1)};
    const Routed r = route(logits, 2, {.score = RouterScore::sigmoid}, {0, -1, 0, 0.5f});
    EXPECT_EQ(r.chosen, (std::vector<int32_t>{0, 3}));
    EXPECT_NEAR(r.weight[0], 0.8 / 0.9, 1e-6);
    EXPECT_NEAR(r.weight[1], 0.1 / 0.9, 1e-6);
}

TEST(Route, OfEqualsTheLowerIndexComesFirst) {
    EXPECT_EQ(route({1, 2, 2, 1, 2}, 4, {}).chosen, (std::vector<int32_t>{1, 2, 4, 0}));
}

TEST(Route, GroupsAreRankedByTheirTwoBest) {
    // Sums of the two best: 0.9 + 0.1, 0.6 + 0.5, 0.55 + 0.55; the single best expert loses.
    const std::vector<float> p = {0.9, 0.1, 0.05, 0.6, 0.5, 0.4, 0.55, 0.55, 0.01};
    std::vector<float> logits;
    for (const float x : p) logits.push_back(logit_of(x));
    const Routed r =
        route(logits, 3, {.score = RouterScore::sigmoid, .groups = 3, .groups_kept = 2});
    EXPECT_EQ(r.chosen, (std::vector<int32_t>{3, 6, 7}));
}

TEST(Route, ChoosesDistinctExpertsEvenAmongNaN) {
    const float nan = std::nanf("");
    std::vector<int32_t> chosen = route({nan, nan, nan, nan}, 3, {}).chosen;
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (const int32_t e : chosen) EXPECT_TRUE(e >= 0 && e < 4);
}

TEST(Route, IsTheSameOnAllDevices) {
    for (const Shape x : {Shape{1, 8}, {37, 128}, {5, 3}})
        expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
            const View weight = a.zeros({x[0], 3}),
                       chosen = a.ints(std::vector<int32_t>(x[0] * 3), {x[0], 3});
            ops::route(s, {.logits = a.normal(x),
                           .bias = a.normal({x[1]}, DType::f32, 0.1),
                           .chosen = chosen,
                           .weight = weight,
                           .score = RouterScore::sigmoid,
                           .scale = 2.5f});
            const View both = a.zeros({x[0], 6});
            for (int64_t r = 0; r < x[0]; ++r)
                for (int j = 0; j < 3; ++j) {
                    both.row<float>(r)[j] = weight.row<float>(r)[j];
                    both.row<float>(r)[3 + j] = static_cast<float>(chosen.row<int32_t>(r)[j]);
                }
            return both;
        });
}

/// A random routing of `rows` to `experts`, some of which nobody chooses.
struct Pairs {
    Pairs(Stream& s, Arena& a, int rows, int top_k, int experts) {
        std::vector<int32_t> v;
        for (int r = 0; r < rows; ++r) {
            const auto first = static_cast<int>(a.random().next() % static_cast<uint64_t>(experts));
            for (int j = 0; j < top_k; ++j) v.push_back((first + j * 2) % experts);
        }
        chosen = a.ints(v, {rows, top_k});
        start = a.ints(std::vector<int32_t>(static_cast<size_t>(experts) + 1), {experts + 1});
        source = a.ints(std::vector<int32_t>(v.size()), {rows * top_k});
        slot = a.ints(std::vector<int32_t>(v.size()), {rows, top_k});
        ops::group_rows(s, {.chosen = chosen, .start = start, .source = source, .slot = slot});
    }
    View chosen, start, source, slot;
};

TEST(GroupRows, SortsPairsByExpertThenRow) {
    for (auto& [name, device] : all_devices()) {
        const auto s = device->make_stream();
        Arena a(*device, *s, 1);
        const Pairs p(*s, a, 29, 3, 11);
        EXPECT_EQ(p.start.as<int32_t>()[0], 0);
        EXPECT_EQ(p.start.as<int32_t>()[11], 29 * 3);
        for (int r = 0; r < 29; ++r)
            for (int j = 0; j < 3; ++j) {
                const int e = p.chosen.row<int32_t>(r)[j], at = p.slot.row<int32_t>(r)[j];
                EXPECT_EQ(p.source.as<int32_t>()[at], r) << name;
                EXPECT_TRUE(at >= p.start.as<int32_t>()[e] && at < p.start.as<int32_t>()[e + 1]);
            }
        for (int e = 0; e < 11; ++e)
            for (int i = p.start.as<int32_t>()[e] + 1; i < p.start.as<int32_t>()[e + 1]; ++i)
                EXPECT_LT(p.source.as<int32_t>()[i - 1], p.source.as<int32_t>()[i]);
    }
}

uint64_t address(const View& v) {
    return reinterpret_cast<uint64_t>(v.data);
}

// One product by itself, on the same device.
using Single = std::function<void(Stream&, ConstView x, int expert, View y)>;

// Every entry equals the product of its row alone, bit for bit: what a token gets does not depend
// on the batch. Expert 1 is left out, so its rows stay as they were.
void expect_rows_alone(const std::string& name, Stream& s, const Pairs& p, ConstView x, View y,
                       const Single& single) {
    constexpr float kUntouched = 77;
    std::vector<float> one(static_cast<size_t>(y.shape[1]));
    for (int e = 0; e + 1 < p.start.shape[0]; ++e)
        for (int i = p.start.as<int32_t>()[e]; i < p.start.as<int32_t>()[e + 1]; ++i) {
            if (e == 1) {
                EXPECT_EQ(y.row<float>(i)[0], kUntouched);
                continue;
            }
            const View to = dense(one.data(), DType::f32, {1, y.shape[1]});
            single(s, slice_rows(x, p.source.as<int32_t>()[i], 1), e, to);
            for (size_t c = 0; c < one.size(); ++c)
                ASSERT_EQ(y.row<float>(i)[c], one[c]) << name << ", entry " << i << ", " << c;
        }
}

View untouched(Arena& a, Shape shape) {
    View v = a.zeros(shape);
    std::fill_n(v.as<float>(), shape.numel(), 77.0f);
    return v;
}

TEST(GroupedLinear, EveryRowEqualsItsOwnProduct) {
    for (auto& [name, device] : all_devices())
        for (const DType dtype : {DType::f32, DType::bf16})
            for (const int rows : {1, 3, 67}) {
                const auto s = device->make_stream();
                Arena a(*device, *s, 3);
                constexpr int kExperts = 5, kIn = 133, kOut = 71;
                const Pairs p(*s, a, rows, 2, kExperts);
                const View x = a.normal({rows, kIn}), y = untouched(a, {rows * 2, kOut});
                std::vector<View> w, b;
                const View table =
                    a.raw(std::vector<uint64_t>(2 * kExperts).data(), DType::u64, {kExperts, 2});
                for (int e = 0; e < kExperts; ++e) {
                    w.push_back(a.normal({kOut, kIn}, dtype));
                    b.push_back(a.normal({kOut}));
                    if (e == 1) continue;
                    table.row<uint64_t>(e)[0] = address(w.back());
                    if (e != 2) table.row<uint64_t>(e)[1] = address(b.back());
                }
                ops::grouped_linear(*s, {.x = x,
                                         .groups = {p.start, p.source},
                                         .matrices = table,
                                         .dtype = dtype,
                                         .y = y});
                expect_rows_alone(
                    name, *s, p, x, y, [&](Stream& st, ConstView row, int e, View to) {
                        ops::linear(st, {.x = row,
                                         .weight = w[static_cast<size_t>(e)],
                                         .bias = e == 2 ? ConstView() : b[static_cast<size_t>(e)],
                                         .y = to});
                    });
            }
}

TEST(GroupedExl3Linear, EveryRowEqualsItsOwnProduct) {
    for (auto& [name, device] : all_devices())
        for (const int rows : {1, 5, 150}) {
            const auto s = device->make_stream();
            Arena a(*device, *s, 4);
            constexpr int kExperts = 4, kIn = 200, kOut = 300, kBits = 3;
            constexpr int64_t kK = 256, kN = 384;
            const Shape tiles = {kK / kTile, kN / kTile, tile_words(kBits)};
            const Pairs p(*s, a, rows, 2, kExperts);
            const View x = a.normal({rows, kIn}), y = untouched(a, {rows * 2, kOut});
            const View table =
                a.raw(std::vector<uint64_t>(4 * kExperts).data(), DType::u64, {kExperts, 4});
            std::vector<View> packed, suh, svh, bias;
            for (int e = 0; e < kExperts; ++e) {
                packed.push_back(a.zeros({tiles[0], tiles[1], tiles[2]}, DType::f16));
                packed.back().dtype = DType::i16;
                ops::exl3_repack(
                    *s,
                    {.trellis = a.bits(tiles, DType::i16), .packed = packed.back(), .bits = kBits});
                suh.push_back(a.normal({kK}, DType::f16));
                svh.push_back(a.normal({kN}, DType::f16));
                bias.push_back(a.normal({kN}));
                if (e == 1) continue;
                uint64_t* at = table.row<uint64_t>(e);
                at[0] = address(packed.back()), at[1] = address(suh.back());
                at[2] = address(svh.back()), at[3] = e == 2 ? 0 : address(bias.back());
            }
            ops::grouped_exl3_linear(*s, {.x = x,
                                          .groups = {p.start, p.source},
                                          .matrices = table,
                                          .y = y,
                                          .k = kK,
                                          .n = kN,
                                          .codebook = kMul1,
                                          .bits = kBits});
            expect_rows_alone(name, *s, p, x, y, [&](Stream& st, ConstView row, int e, View to) {
                const auto i = static_cast<size_t>(e);
                ops::exl3_linear(st, {.x = row,
                                      .packed = packed[i],
                                      .suh = suh[i],
                                      .svh = svh[i],
                                      .bias = e == 2 ? ConstView() : bias[i],
                                      .y = to,
                                      .codebook = kMul1,
                                      .bits = kBits});
            });
        }
}

TEST(CombineRows, MatchesReference) {
    for (const Shape shape : {Shape{1, 8}, {13, 257}, {3, 5003}})
        expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
            const auto rows = static_cast<int>(shape[0]);
            const Pairs p(s, a, rows, 3, 7);
            const View y = a.zeros(shape);
            ops::combine_rows(s, {.x = a.normal({rows * 3, shape[1]}),
                                  .slot = p.slot,
                                  .weight = a.normal({rows, 3}),
                                  .y = y});
            return y;
        });
}

TEST(HeadGate, MatchesReference) {
    for (const Shape x : {Shape{1, 1, 1}, {7, 3, 65}, {2, 5, 128}})
        for (const bool each : {false, true})
            for (const GateAct act : {GateAct::sigmoid, GateAct::softplus})
                expect_same_on_all_devices({.rtol = 1e-6}, [&](Stream& s, Arena& a) {
                    const View y = a.normal(x);
                    ops::head_gate(s,
                                   {.x = y,
                                    .gate = a.normal({x[0], x[1], each ? x[2] : 1}, DType::f32, 8),
                                    .act = act});
                    return reshape(y, {x[0] * x[1], x[2]});
                });
}

}  // namespace
}  // namespace exl3::test
