#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/temp_folder.h"

namespace exl3 {
namespace {

using test::TempFolder;

TEST(Safetensors, WhatIsWrittenIsRead) {
    const TempFolder folder;
    const std::vector<float> a = {1, 2, 3, 4, 5, 6};
    const int32_t marker = -877912083;
    const auto path = folder / "m.safetensors";
    write_safetensors(path, {{"b", DType::f32, {2, 3}, a.data()},
                             {"empty", DType::f16, {0, 128}, nullptr},
                             {"a \"quoted\" é", DType::i32, {}, &marker}});
    const auto file = SafetensorsFile::open(path).value();
    ASSERT_EQ(file.tensors().size(), 3u);
    EXPECT_EQ(file.tensors()[0].name, "b");
    EXPECT_EQ(file.tensors()[0].offset % 64, 0u);
    EXPECT_EQ(file.view(*file.find("b")).shape, (Shape{2, 3}));
    EXPECT_EQ(std::memcmp(file.view(*file.find("b")).data, a.data(), 24), 0);
    EXPECT_EQ(file.view(*file.find("empty")).shape, (Shape{0, 128}));
    EXPECT_EQ(*file.view(*file.find("a \"quoted\" é")).as<int32_t>(), marker);
    EXPECT_EQ(file.find("a"), nullptr);
    EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace
}  // namespace exl3
