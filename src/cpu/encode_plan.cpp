#include "cpu/encode_plan.h"

#include <cmath>
#include <cstdlib>

namespace exl3::cpu {
namespace {

int streamed_state(const EncodeTables& t, int i) {
    const int edges = 65536 >> t.bits, fan = 1 << t.bits, low = edges >> t.bits;
    if (is_fixed(t.bits)) {
        const int lane = i % t.width, k = i / t.width % fan;
        const int symbol = i / (t.width * fan) % fan, block = i / (t.width * fan * fan);
        return (k * low + block * t.width + lane) << t.bits | symbol;
    }
    const int block = t.width * t.vectors;
    const int k = i / block % fan, edge = i / (block * fan) * block + i % block;
    return k * edges + edge;
}

void put(const EncodeTables& t, void* table, int i, float value, float range) {
    if (is_fixed(t.bits))
        static_cast<int16_t*>(table)[i] = static_cast<int16_t>(std::lrint(value * 32767 / range));
    else
        static_cast<float*>(table)[i] = value;
}

}  // namespace

float fixed_range(Codebook codebook) {
    return codebook.kind == CodebookKind::mul1 ? 3.9f : 4.4f;
}

void fill_tables(const EncodeTables& t, Codebook codebook, int begin, int end) {
    const float range = fixed_range(codebook);
    const auto value = [&](int state) {
        return to_float(decode_state(static_cast<uint16_t>(state), codebook));
    };
    for (int i = begin; i < end; ++i) {
        put(t, t.stream, i, value(streamed_state(t, i)), range);
        const int edge = i >> t.bits, k = i & ((1 << t.bits) - 1);
        put(t, t.trace, i, value(k << (16 - t.bits) | edge), range);
    }
}

int lead_positions(int bits) {
    constexpr int kPositions[] = {0, 96, 96, 80, 64, 64, 48, 32, 24};
    static const int ov = getenv("SEAM") ? atoi(getenv("SEAM")) : 0; if (ov) return ov;
    return kPositions[bits];
}

}  // namespace exl3::cpu
