#pragma once
#include <cstdint>
#include <span>

#include "base/half.h"

namespace exl3 {

/// Expands the packed signs of pre-release files (`su`, `sv`) to the scales that replaced them
/// (`suh`, `svh`): bit i, lowest first, of word w is channel 16 w + i; a set bit is -1, a clear one
/// +1 (docs/format.md "Legacy forms").
/// @param words   (channels / 16) as stored
/// @param scales  (channels) f16, overwritten; 16 per word, anything else is a caller's bug
void expand_signs(std::span<const uint16_t> words, std::span<f16> scales);

}  // namespace exl3
