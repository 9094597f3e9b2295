#include "cache/state_cache.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cpu/cpu.h"

namespace exl3 {
namespace {

// A convolution alone, a layer without state, a recurrence with its convolution.
StateLayout layout() {
    StateLayout l;
    l.layers = {{.window = 2, .channels = 5},
                {},
                {.window = 3, .channels = 7, .heads = 2, .key_dim = 3, .value_dim = 4}};
    return l;
}

void fill(const View& v, float first) {
    for (int64_t i = 0; i < v.shape.numel(); ++i) v.as<float>()[i] = first + static_cast<float>(i);
}

std::vector<std::byte> saved(const StateCache& cache, Stream& s, int slot) {
    std::vector<std::byte> bytes(cache.bytes_per_slot());
    cache.save(s, slot, bytes);
    return bytes;
}

struct States : testing::Test {
    std::unique_ptr<Device> device = cpu::open({.threads = 1});
    std::unique_ptr<Stream> stream = device->make_stream();
    StateCache cache{*device, layout(), 3};
    States() {
        fill(cache.layer(0).window, 1);
        fill(cache.layer(2).window, 1000);
        fill(cache.layer(2).memory, 2000);
    }
};

TEST_F(States, BytesCountWhatLayersKeep) {
    EXPECT_EQ(cache.bytes_per_slot(), 4u * (2 * 5 + 3 * 7 + 2 * 3 * 4));
    EXPECT_EQ(layout().only(0).bytes_per_slot(), 4u * 2 * 5);
    EXPECT_EQ(layout().only(1).bytes_per_slot(), 0u);
    EXPECT_EQ(layout().only(2).layers.size(), 3u);
}

TEST_F(States, LayersWithoutStateHaveEmptyViews) {
    EXPECT_FALSE(cache.layer(1).window);
    EXPECT_FALSE(cache.layer(1).memory);
    EXPECT_FALSE(cache.layer(0).memory);
}

TEST_F(States, ACopyIsEqualAndIndependent) {
    const auto other = saved(cache, *stream, 1);
    cache.copy(*stream, 0, 2);
    EXPECT_EQ(saved(cache, *stream, 2), saved(cache, *stream, 0));
    EXPECT_EQ(saved(cache, *stream, 1), other);
    fill(cache.layer(2).memory, -5);
    cache.copy(*stream, 1, 1);
    EXPECT_NE(saved(cache, *stream, 2), saved(cache, *stream, 0));
}

TEST_F(States, WhatWasSavedComesBackInAnySlot) {
    const auto bytes = saved(cache, *stream, 1);
    float first = 0;
    std::memcpy(&first, bytes.data(), sizeof first);
    EXPECT_EQ(first, 11);  // the second slot of the first window
    cache.restore(*stream, 0, bytes);
    EXPECT_EQ(saved(cache, *stream, 0), bytes);
    EXPECT_EQ(cache.layer(2).memory.as<float>()[0], 2000 + 24);
}

TEST_F(States, ResetZeroesOneSlot) {
    const auto kept = saved(cache, *stream, 2);
    cache.reset(*stream, 1);
    EXPECT_EQ(saved(cache, *stream, 1), std::vector<std::byte>(cache.bytes_per_slot()));
    EXPECT_EQ(saved(cache, *stream, 2), kept);
}

TEST_F(States, SlotsThatDoNotExistAreABug) {
    EXPECT_DEATH(cache.reset(*stream, 3), "");
    std::vector<std::byte> small(3);
    EXPECT_DEATH(cache.save(*stream, 0, small), "");
}

}  // namespace
}  // namespace exl3
