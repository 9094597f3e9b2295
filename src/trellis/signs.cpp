#include "trellis/signs.h"

#include "base/error.h"

namespace exl3 {

void expand_signs(std::span<const uint16_t> words, std::span<f16> scales) {
    EXL3_CHECK(scales.size() == 16 * words.size());
    constexpr uint16_t kOne = 0x3C00, kMinusOne = 0xBC00;
    for (size_t i = 0; i < scales.size(); ++i)
        scales[i].bits = (words[i / 16] >> (i % 16)) & 1 ? kMinusOne : kOne;
}

}  // namespace exl3
