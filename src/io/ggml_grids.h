#pragma once
#include <cstdint>

// The points that the IQ types choose from: constants of the file format. An entry lists the
// levels of its elements, first element in the lowest bits.
namespace exl3::ggml {

extern const uint16_t kGridIq2Xxs[256];  // 8 elements, 2 bits each: levels 8, 25, 43
extern const uint16_t kGridIq2Xs[512];   // the same
extern const uint16_t kGridIq2S[1024];   // the same
extern const uint16_t kGridIq3Xxs[256];  // 4 elements, 3 bits each: levels 4 to 62
extern const uint16_t kGridIq3S[512];    // 4 elements, 3 bits each: odd levels 1 to 15
extern const uint16_t kGridIq1[2048];    // 8 elements, 2 bits each: levels -1, 0, 1

}  // namespace exl3::ggml
