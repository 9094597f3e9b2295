#include "support/devices.h"

namespace exl3::test {

TEST(Embed, MatchesReference) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const auto& [vocab, hidden] : {std::pair<int64_t, int64_t>{1, 1}, {11, 7}, {23, 2503}})
            expect_same_on_all_devices({.rtol = 1e-7}, [&](Stream& s, Arena& a) {
                std::vector<int32_t> tokens(9);
                for (auto& t : tokens)
                    t = static_cast<int32_t>(a.random().below(static_cast<uint64_t>(vocab)));
                tokens.back() = static_cast<int32_t>(vocab - 1);
                const View y = a.normal({9, hidden});
                ops::embed(s, {.tokens = a.ints(tokens, {9}),
                               .table = a.normal({vocab, hidden}, dtype),
                               .y = y,
                               .scale = 1.7f});
                return y;
            });
}

}  // namespace exl3::test
