#include "io/checkpoint.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace exl3 {
namespace {

TEST(Checkpoint, OpensTheModelOfTheRepository) {
    const auto c = Checkpoint::open(EXL3_SOURCE_DIR "/models/tales-9m");
    EXPECT_TRUE(c.has("model.embed_tokens.weight"));
    EXPECT_GT(c.total_bytes(), 1'000'000u);
    EXPECT_FALSE(c.config().architecture().empty());
    EXPECT_TRUE(c.generation_config());
}

}  // namespace
}  // namespace exl3
