// Integer products of runs in AVX2 registers. No include guard and no namespace: exl3_linear.cpp
// includes this inside the tier's namespace and target region.
#include "cpu/exl3_runs_avx2.h"

inline constexpr int kPanelRows = 4;

/// Both halves of an mcg or 3inst hash as integers. With e the two stored exponent bits after the
/// xor, a half is (1024 + mantissa) >> (3 - e), complemented where the sign is set. AVX2 shifts no
/// 16-bit lanes by variable counts: the high half of a product with 2^(8 + e) does.
EXL3_INLINE Runs half_integers(Runs hash) {
    const Runs mantissa =
        _mm256_xor_si256(_mm256_and_si256(_mm256_slli_epi16(hash, 5), _mm256_set1_epi16(0x7fe0)),
                         _mm256_set1_epi16(static_cast<int16_t>(0xec00)));
    // Index: the exponent bits in the high byte; bit 7 of the low byte makes it zero.
    const Runs index = _mm256_or_si256(_mm256_and_si256(hash, _mm256_set1_epi16(0x0c00)),
                                       _mm256_set1_epi16(0x0080));
    const Runs power =
        _mm256_shuffle_epi8(_mm256_setr_epi8(4, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0,  //
                                             4, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0),
                            index);
    return _mm256_xor_si256(_mm256_mulhi_epu16(mantissa, power), _mm256_srai_epi16(hash, 15));
}

/// Two 16-bit numbers per lane whose sum is the integer weight.
template <CodebookKind C>
EXL3_INLINE Runs weight_halves(Runs hash) {
    if constexpr (C == CodebookKind::mul1)
        return _mm256_maddubs_epi16(hash, _mm256_set1_epi8(1));
    else
        return half_integers(hash);
}

/// The integer weights of two states, the first in the low half.
template <CodebookKind C>
EXL3_INLINE Runs weight_pair(Runs first, Runs second) {
    const Runs ones = _mm256_set1_epi16(1);
    return _mm256_blend_epi16(
        _mm256_madd_epi16(weight_halves<C>(first), ones),
        _mm256_slli_epi32(_mm256_madd_epi16(weight_halves<C>(second), ones), 16), 0xAA);
}

/// Adds states T .. 31 of each run times their activations. acc: one per column half.
template <int K, CodebookKind C, int T = 0>
EXL3_INLINE void dot_run(const Runs* w, Runs multiplier, const int32_t* twice, Runs* acc) {
    if constexpr (T < 32) {
        constexpr int kHalf = tile_col(T) / 8;
        acc[kHalf] = add_dot16(acc[kHalf], weight_halves<C>(run_hash<K, C, T>(w, multiplier)),
                               _mm256_set1_epi32(twice[tile_row(T)]));
        dot_run<K, C, T + 1>(w, multiplier, twice, acc);
    }
}

template <int K, CodebookKind C>
void dot_pair(const uint32_t* words, const QuantizedRows& x, uint32_t multiplier, float* out) {
    const Runs m = splat_runs(multiplier);
    __m256 sum[2][2] = {{_mm256_setzero_ps(), _mm256_setzero_ps()},
                        {_mm256_setzero_ps(), _mm256_setzero_ps()}};
    for (int64_t b = 0; b < x.blocks; ++b, words += kBlockTiles * run_words(K)) {
        const Runs start = _mm256_set1_epi32(x.start[b]);
        const __m256 scale = _mm256_set1_ps(x.scale[b]);
        for (int tile = 0; tile < 2; ++tile) {
            Runs acc[2] = {start, start};
            for (int t = 0; t < kBlockTiles; ++t) {
                Runs w[K + 1];
                load_runs<K>(words + t * run_words(K) + tile * kTileLanes, w);
                dot_run<K, C>(w, m, x.twice + b * kBlock + t * kTile, acc);
            }
            for (int h = 0; h < 2; ++h)
                sum[h][tile] =
                    _mm256_add_ps(sum[h][tile], _mm256_mul_ps(_mm256_cvtepi32_ps(acc[h]), scale));
        }
    }
    for (int h = 0; h < 2; ++h)
        for (int tile = 0; tile < 2; ++tile)
            _mm256_storeu_ps(out + h * kRunLanes + tile * kTileLanes, sum[h][tile]);
}

template <int K, CodebookKind C, int P = 0>
EXL3_INLINE void panel_run(const Runs* w, Runs multiplier, int32_t* panel) {
    if constexpr (P < 16) {
        constexpr int kRow = tile_row(2 * P), kHalf = tile_col(2 * P) / 8;
        const Runs pair = weight_pair<C>(run_hash<K, C, 2 * P>(w, multiplier),
                                         run_hash<K, C, 2 * P + 1>(w, multiplier));
        _mm256_store_si256(reinterpret_cast<Runs*>(panel + (kRow + kHalf) * kRunLanes), pair);
        panel_run<K, C, P + 1>(w, multiplier, panel);
    }
}

template <int K, CodebookKind C>
void make_panel(const uint32_t* words, uint32_t multiplier, int32_t* panel) {
    const Runs m = splat_runs(multiplier);
    for (int t = 0; t < kBlockTiles; ++t, words += run_words(K), panel += kPanel / kBlockTiles)
        for (int lane = 0; lane < kRunLanes; lane += kTileLanes) {
            Runs w[K + 1];
            load_runs<K>(words + lane, w);
            panel_run<K, C>(w, m, panel + lane);
        }
}

// Accumulators of the multiplication; exl3_products_avx512.h says why they have a type of their
// own.
typedef uint32_t Sums __attribute__((vector_size(32), may_alias));

EXL3_INLINE Sums add_products(Sums sums, Runs weights, Runs activations) {
    return sums + reinterpret_cast<Sums>(_mm256_madd_epi16(weights, activations));
}

/// c[0 : 8] += scale * sums
EXL3_INLINE void add_scaled(Sums sums, float scale, float* c) {
    const __m256 more =
        _mm256_mul_ps(_mm256_cvtepi32_ps(reinterpret_cast<Runs>(sums)), _mm256_set1_ps(scale));
    _mm256_storeu_ps(c, _mm256_add_ps(_mm256_loadu_ps(c), more));
}

template <int R>
void multiply_rows(const int32_t* panel, const int16_t* q, const int32_t* start, const float* scale,
                   float* c, int64_t c_stride) {
    for (int lane = 0; lane < kRunLanes; lane += kTileLanes) {
        Sums left[R], right[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            left[r] = reinterpret_cast<Sums>(_mm256_set1_epi32(start[r]));
            right[r] = left[r];
        }
        for (int i = 0; i < kBlock; i += 2) {
            const auto* w = reinterpret_cast<const Runs*>(panel + i / 2 * kRunColumns + lane);
            const Runs w0 = _mm256_load_si256(w), w1 = _mm256_load_si256(w + 2);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) {
                int32_t pair;
                std::memcpy(&pair, q + r * kBlock + i, sizeof pair);
                const Runs a = _mm256_set1_epi32(pair);
                left[r] = add_products(left[r], w0, a);
                right[r] = add_products(right[r], w1, a);
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            add_scaled(left[r], scale[r], c + r * c_stride + lane);
            add_scaled(right[r], scale[r], c + r * c_stride + kRunLanes + lane);
        }
    }
}
