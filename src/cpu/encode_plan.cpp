#include "cpu/encode_plan.h"

#include <cmath>

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

float fixed_limit(Codebook codebook) {
    return codebook.kind == CodebookKind::mul1 ? 3.9f : 4.4f;
}

float fixed_range(Codebook codebook, int bits) {
    // At 1 and 2 bits errors are large: a coarser unit still is a tenth of the mean, and leaves
    // room for tiles whose every target is out of reach.
    return fixed_limit(codebook) * static_cast<float>(bits <= 2 ? 2 : 1);
}

void fill_tables(const EncodeTables& t, Codebook codebook, int begin, int end) {
    const float range = fixed_range(codebook, t.bits);
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
    constexpr int kPositions[] = {0, 128, 128, 96, 96, 96, 64, 48, 32};
    return kPositions[bits];
}

}  // namespace exl3::cpu
