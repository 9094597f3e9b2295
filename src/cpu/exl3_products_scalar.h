// Integer products of runs, one state at a time. No include guard and no namespace: exl3_linear.cpp
// includes this inside the tier's namespace.
#include "cpu/exl3_runs_scalar.h"

inline constexpr int kPanelRows = 4;

/// One half of an mcg or 3inst hash; half_integers of the vector tiers has the rule.
inline int32_t half_integer(uint32_t half) {
    const auto mantissa = static_cast<int32_t>((half & 0x3ff) ^ 0x760);
    const int32_t magnitude = mantissa >> (((half >> 10) & 3) ^ 1);
    return half & 0x8000 ? ~magnitude : magnitude;
}

template <CodebookKind C>
inline int32_t integer_weight(uint32_t state, uint32_t multiplier) {
    if constexpr (C == CodebookKind::mul1) {
        return static_cast<int32_t>(mul1_byte_sum(state, multiplier));
    } else {
        uint32_t h = state * multiplier;
        if constexpr (C == CodebookKind::three_inst) h += kThreeInstAddend;
        return half_integer(h & 0xffff) + half_integer(h >> 16);
    }
}

template <int K, CodebookKind C>
void make_panel(const uint32_t* words, uint32_t multiplier, int32_t* panel) {
    for (int t = 0; t < kBlockTiles; ++t, words += run_words(K), panel += kPanel / kBlockTiles)
        for (int lane = 0; lane < kRunLanes; ++lane)
            for (int p = 0; p < 16; ++p) {
                const int32_t first =
                    integer_weight<C>(run_state<K>(words, lane, 2 * p), multiplier);
                const int32_t second =
                    integer_weight<C>(run_state<K>(words, lane, 2 * p + 1), multiplier);
                panel[(tile_row(2 * p) + tile_col(2 * p) / 8) * kRunLanes + lane] =
                    static_cast<int32_t>((first & 0xffff) | static_cast<uint32_t>(second) << 16);
            }
}

template <int R>
void multiply_rows(const int32_t* panel, const int16_t* q, const int32_t* start, const float* scale,
                   float* c, int64_t c_stride) {
    for (int r = 0; r < R; ++r) {
        // Unsigned: sums may wrap on the way to a total that fits.
        uint32_t acc[kRunColumns];
        for (uint32_t& a : acc) a = static_cast<uint32_t>(start[r]);
        for (int i = 0; i < kBlock; i += 2) {
            const int32_t first = q[r * kBlock + i], second = q[r * kBlock + i + 1];
            for (int j = 0; j < kRunColumns; ++j) {
                const int32_t pair = panel[i / 2 * kRunColumns + j];
                acc[j] += static_cast<uint32_t>(first * static_cast<int16_t>(pair)) +
                          static_cast<uint32_t>(second * (pair >> 16));
            }
        }
        for (int j = 0; j < kRunColumns; ++j)
            c[r * c_stride + j] += static_cast<float>(static_cast<int32_t>(acc[j])) * scale[r];
    }
}

template <int K, CodebookKind C>
void dot_pair(const uint32_t* words, const QuantizedRows& x, uint32_t multiplier, float* out) {
    int32_t panel[kPanel];
    for (int j = 0; j < kRunColumns; ++j) out[j] = 0;
    for (int64_t b = 0; b < x.blocks; ++b) {
        make_panel<K, C>(words + b * kBlockTiles * run_words(K), multiplier, panel);
        multiply_rows<1>(panel, x.block(b), x.start + b, x.scale + b, out, kRunColumns);
    }
}
