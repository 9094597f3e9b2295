#include "cache/paged_cache.h"

#include <gtest/gtest.h>

#include "backends/backends.h"

namespace exl3::test {

TEST(PagedCache, BytesPerTokenFollowTheBits) {
    const KvLayout layout{{{.kv_heads = 2, .head_dim = 64}, {}, {.kv_heads = 1, .head_dim = 32}}};
    const uint64_t channels = 2 * 64 + 32;
    EXPECT_EQ(layout.bytes_per_token(), 4 * channels);
    EXPECT_EQ(layout.bytes_per_token({4, 4}), channels * (4 + 4 + 1) / 8);
    EXPECT_EQ(layout.bytes_per_token({8, 3}), channels * (8 + 3 + 1) / 8);
    EXPECT_EQ(layout.bytes_per_token({16, 2}), channels * 2 + channels * 2 / 8 + channels / 16);
}

TEST(PagedCache, HoldsWhatItsLayoutSays) {
    const auto device = open_device("cpu").value();
    const KvLayout layout{{{.kv_heads = 2, .head_dim = 64}, {}}};
    const PagedCache cache(*device, layout, 3, {5, 16});
    const KvView kv = cache.layer(0);
    EXPECT_EQ(kv.k.shape, (Shape{3, kPageTokens, 2, 10}));
    EXPECT_EQ(kv.k_scale.shape, (Shape{3, kPageTokens, 2, 2}));
    EXPECT_EQ(kv.v.shape, (Shape{3, kPageTokens, 2, 64}));
    EXPECT_FALSE(kv.v_scale);
    EXPECT_FALSE(cache.layer(1).k);
}

TEST(PagedCache, RefusesHeadsThatGroupsDoNotDivide) {
    const auto device = open_device("cpu").value();
    const KvLayout layout{{{.kv_heads = 1, .head_dim = 64}, {.kv_heads = 1, .head_dim = 80}}};
    const PagedCache plain(*device, layout, 1);
    try {
        const PagedCache quantized(*device, layout, 1, {8, 8});
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::unsupported);
        EXPECT_NE(std::string(e.what()).find("layer 1 has heads of 80 channels"), std::string::npos)
            << e.what();
    }
}

}  // namespace exl3::test
