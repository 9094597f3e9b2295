// Integer products of runs in AVX-512 registers. No include guard and no namespace: exl3_linear.cpp
// includes this inside the tier's namespace and target region.
#include "cpu/exl3_runs_avx512.h"

inline constexpr int kPanelRows = 12;

/// Both halves of an mcg or 3inst hash as integers. With e the two stored exponent bits after the
/// xor, a half is (1024 + mantissa) >> (3 - e), complemented where the sign is set.
EXL3_INLINE Runs half_integers(Runs hash) {
    const Runs right = _mm512_ternarylogic_epi32(_mm512_srli_epi16(hash, 10), _mm512_set1_epi16(3),
                                                 _mm512_set1_epi16(1), 0x6A);  // (a & b) ^ c
    const Runs mantissa =
        _mm512_ternarylogic_epi32(hash, _mm512_set1_epi16(0x3ff), _mm512_set1_epi16(0x760), 0x6A);
    return _mm512_xor_si512(_mm512_srlv_epi16(mantissa, right), _mm512_srai_epi16(hash, 15));
}

/// Two 16-bit numbers per lane whose sum is the integer weight.
template <CodebookKind C>
EXL3_INLINE Runs weight_halves(Runs hash) {
    if constexpr (C == CodebookKind::mul1)
        return _mm512_maddubs_epi16(hash, _mm512_set1_epi8(1));
    else
        return half_integers(hash);
}

/// The integer weights of two states, the first in the low half.
template <CodebookKind C>
EXL3_INLINE Runs weight_pair(Runs first, Runs second) {
    if constexpr (C == CodebookKind::mul1) {
        // Byte sums are not negative, so the low half never borrows from the high one.
        const Runs high = _mm512_slli_epi32(add_bytes(_mm512_setzero_si512(), second), 16);
        return add_bytes(high, first);
    } else {
        const Runs ones = _mm512_set1_epi16(1);
        const Runs low_halves = _mm512_add_epi32(
            _mm512_mullo_epi32(
                _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                _mm512_set1_epi32(0x00020002)),
            _mm512_set1_epi32(0x00200000));
        return _mm512_permutex2var_epi16(_mm512_madd_epi16(half_integers(first), ones), low_halves,
                                         _mm512_madd_epi16(half_integers(second), ones));
    }
}

EXL3_INLINE Runs splat_pair(const int16_t* pair) {
    int32_t both;
    std::memcpy(&both, pair, sizeof both);
    return _mm512_set1_epi32(both);
}

// The byte sums of two states cost one multiply less as a pair than apart, once VNNI adds bytes;
// for everything else the halves go to the dot product as they are.
#if EXL3_ISA_PASS >= 3
template <CodebookKind C>
inline constexpr bool kDotByPairs = C == CodebookKind::mul1;
#else
template <CodebookKind C>
inline constexpr bool kDotByPairs = false;
#endif

/// Adds states 2 P .. 31 of each run times their activations. acc: [parity][column half].
template <int K, CodebookKind C, int P = 0>
EXL3_INLINE void dot_run(const Runs* w, Runs multiplier, const int16_t* q, const int32_t* twice,
                         Runs (*acc)[2]) {
    if constexpr (P < 16) {
        constexpr int kRow = tile_row(2 * P), kHalf = tile_col(2 * P) / 8;
        const Runs first = run_hash<K, C, 2 * P>(w, multiplier);
        const Runs second = run_hash<K, C, 2 * P + 1>(w, multiplier);
        if constexpr (kDotByPairs<C>) {
            Runs& a = acc[P % 2][kHalf];
            a = add_dot16(a, weight_pair<C>(first, second), splat_pair(q + kRow));
        } else {
            acc[0][kHalf] =
                add_dot16(acc[0][kHalf], weight_halves<C>(first), _mm512_set1_epi32(twice[kRow]));
            acc[1][kHalf] = add_dot16(acc[1][kHalf], weight_halves<C>(second),
                                      _mm512_set1_epi32(twice[kRow + 1]));
        }
        dot_run<K, C, P + 1>(w, multiplier, q, twice, acc);
    }
}

template <int K, CodebookKind C>
void dot_pair(const uint32_t* words, const QuantizedRows& x, uint32_t multiplier, float* out) {
    const Runs m = splat_runs(multiplier);
    __m512 sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int64_t b = 0; b < x.blocks; ++b) {
        const Runs start = _mm512_set1_epi32(x.start[b]);
        Runs acc[2][2] = {{start, start}, {_mm512_setzero_si512(), _mm512_setzero_si512()}};
        for (int t = 0; t < kBlockTiles; ++t, words += run_words(K)) {
            Runs w[K + 1];
            load_runs<K>(words, w);
            const int64_t channel = b * kBlock + t * kTile;
            dot_run<K, C>(w, m, x.q + channel, x.twice + channel, acc);
        }
        const __m512 scale = _mm512_set1_ps(x.scale[b]);
        for (int h = 0; h < 2; ++h) {
            const Runs total = _mm512_add_epi32(acc[0][h], acc[1][h]);
            sum[h] = _mm512_add_ps(sum[h], _mm512_mul_ps(_mm512_cvtepi32_ps(total), scale));
        }
    }
    for (int h = 0; h < 2; ++h) _mm512_storeu_ps(out + h * kRunLanes, sum[h]);
}

template <int K, CodebookKind C, int P = 0>
EXL3_INLINE void panel_run(const Runs* w, Runs multiplier, int32_t* panel) {
    if constexpr (P < 16) {
        constexpr int kRow = tile_row(2 * P), kHalf = tile_col(2 * P) / 8;
        const Runs pair = weight_pair<C>(run_hash<K, C, 2 * P>(w, multiplier),
                                         run_hash<K, C, 2 * P + 1>(w, multiplier));
        _mm512_store_si512(panel + (kRow + kHalf) * kRunLanes, pair);
        panel_run<K, C, P + 1>(w, multiplier, panel);
    }
}

template <int K, CodebookKind C>
void make_panel(const uint32_t* words, uint32_t multiplier, int32_t* panel) {
    const Runs m = splat_runs(multiplier);
    for (int t = 0; t < kBlockTiles; ++t, words += run_words(K), panel += kPanel / kBlockTiles) {
        Runs w[K + 1];
        load_runs<K>(words, w);
        panel_run<K, C>(w, m, panel);
    }
}

// Accumulators of the multiplication. GCC 12 keeps a 64-bit-lane copy of each __m512i that dpwssd
// updates, and spills them all; as 32-bit lanes they stay in registers (100 against 240 GMAC/s).
// Unsigned, because sums may wrap on the way to a total that fits.
typedef uint32_t Sums __attribute__((vector_size(64), may_alias));

EXL3_INLINE Sums add_products(Sums sums, Runs weights, Runs activations) {
    return reinterpret_cast<Sums>(add_dot16(reinterpret_cast<Runs>(sums), weights, activations));
}

/// c[0 : 16] += scale * sums
EXL3_INLINE void add_scaled(Sums sums, float scale, float* c) {
    const __m512 more =
        _mm512_mul_ps(_mm512_cvtepi32_ps(reinterpret_cast<Runs>(sums)), _mm512_set1_ps(scale));
    _mm512_storeu_ps(c, _mm512_add_ps(_mm512_loadu_ps(c), more));
}

template <int R>
void multiply_rows(const int32_t* panel, const int16_t* q, const int32_t* start, const float* scale,
                   float* c, int64_t c_stride) {
    // Few rows have too few sums to hide the latency of a product: each is kept in several parts.
    constexpr int kParts = R <= 2 ? 4 : R <= 5 ? 2 : 1;
    Sums left[kParts * R], right[kParts * R];
    // Products of many rows lie in the second-level cache: asked for here, they are in time.
    for (int r = 0; r < R; ++r) {
        __builtin_prefetch(c + r * c_stride, 1);
        __builtin_prefetch(c + r * c_stride + kRunLanes, 1);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kParts * R; ++r) {
        left[r] = reinterpret_cast<Sums>(_mm512_set1_epi32(r < R ? start[r] : 0));
        right[r] = left[r];
    }
    for (int i = 0; i < kBlock; i += 2 * kParts, panel += kParts * kRunColumns) {
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part) {
            const Runs w0 = _mm512_load_si512(panel + part * kRunColumns);
            const Runs w1 = _mm512_load_si512(panel + part * kRunColumns + kRunLanes);
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) {
                const Runs a = splat_pair(q + r * kBlock + i + 2 * part);
                left[part * R + r] = add_products(left[part * R + r], w0, a);
                right[part * R + r] = add_products(right[part * R + r], w1, a);
            }
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
        for (int part = 1; part < kParts; ++part) {
            left[r] += left[part * R + r];
            right[r] += right[part * R + r];
        }
        add_scaled(left[r], scale[r], c + r * c_stride);
        add_scaled(right[r], scale[r], c + r * c_stride + kRunLanes);
    }
}
