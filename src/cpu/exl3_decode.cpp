#define EXL3_ISA_FILE "cpu/exl3_decode.cpp"
#define EXL3_ISA_TIERS 4
#include "cpu/isa.h"

#include "core/device.h"
#include "cpu/exl3_runs.h"
#include "ops/exl3.h"

EXL3_ISA_BEGIN

#if EXL3_ISA_PASS == 0
#include "cpu/exl3_runs_scalar.h"
#elif EXL3_ISA_PASS == 1
#include "cpu/exl3_runs_avx2.h"
#else
#include "cpu/exl3_runs_avx512.h"
#endif

inline void store_value(f16 value, f16* y) {
    *y = value;
}
inline void store_value(f16 value, float* y) {
    *y = to_float(value);
}

#if EXL3_ISA_PASS == 0
/// One tile row of a column pair to y[16, 32].
template <int K, CodebookKind C, typename Y>
void decode_tiles(const uint32_t* words, uint32_t multiplier, Y* y, int64_t stride) {
    for (int lane = 0; lane < kRunLanes; ++lane)
        for (int t = 0; t < 32; ++t) {
            const auto state = static_cast<uint16_t>(run_state<K>(words, lane, t));
            store_value(decode_state(state, {C, multiplier}),
                        y + tile_row(t) * stride + lane / 8 * kTile + lane % 8 + tile_col(t));
        }
}
#else
// Eight values of one row, rounded to f16.
EXL3_INLINE void store_eight(__m128i halves, f16* y) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), halves);
}
EXL3_INLINE void store_eight(__m128i halves, float* y) {
    _mm256_storeu_ps(y, _mm256_cvtph_ps(halves));
}

template <typename Y>
EXL3_INLINE void store_runs(F32 values, Y* y) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
#if EXL3_ISA_PASS == 1
    store_eight(_mm256_cvtps_ph(values.v, kNearest), y);
#else
    const __m256i halves = _mm512_cvtps_ph(values.v, kNearest);
    store_eight(_mm256_castsi256_si128(halves), y);
    store_eight(_mm256_extracti128_si256(halves, 1), y + kTile);
#endif
}

template <int K, CodebookKind C, typename Y, int T = 0>
EXL3_INLINE void decode_run(const Runs* w, Runs multiplier, Y* y, int64_t stride) {
    if constexpr (T < 32) {
        store_runs(run_values<C>(run_hash<K, C, T>(w, multiplier)),
                   y + tile_row(T) * stride + tile_col(T));
        decode_run<K, C, Y, T + 1>(w, multiplier, y, stride);
    }
}

/// One tile row of a column pair to y[16, 32].
template <int K, CodebookKind C, typename Y>
void decode_tiles(const uint32_t* words, uint32_t multiplier, Y* y, int64_t stride) {
    const Runs m = splat_runs(multiplier);
    for (int lane = 0; lane < kRunLanes; lane += F32::width) {
        Runs w[K + 1];
        load_runs<K>(words + lane, w);
        decode_run<K, C>(w, m, y + 2 * lane, stride);
    }
}
#endif

template <CodebookKind C, typename Y>
auto decoder_for(int bits) {
    using Decode = void (*)(const uint32_t*, uint32_t, Y*, int64_t);
    static constexpr Decode kByBits[] = {
        decode_tiles<1, C, Y>, decode_tiles<2, C, Y>, decode_tiles<3, C, Y>, decode_tiles<4, C, Y>,
        decode_tiles<5, C, Y>, decode_tiles<6, C, Y>, decode_tiles<7, C, Y>, decode_tiles<8, C, Y>};
    return kByBits[bits - 1];
}

// Tile row after tile row of a block of kDecodePairs column pairs: at any time, writes go to 16
// rows and reads come from kDecodePairs streams, which translation caches and prefetchers still
// follow.
inline constexpr int64_t kDecodePairs = 16;

// Tile rows [begin, end) of every column pair.
template <typename Y>
void decode_rows(const Exl3DecodeArgs& a, int64_t begin, int64_t end) {
    const auto decode =
        a.codebook.kind == CodebookKind::mul1  ? decoder_for<CodebookKind::mul1, Y>(a.bits)
        : a.codebook.kind == CodebookKind::mcg ? decoder_for<CodebookKind::mcg, Y>(a.bits)
                                               : decoder_for<CodebookKind::three_inst, Y>(a.bits);
    const int64_t tile_rows = a.packed.shape[0], pairs = a.packed.shape[1] / 2;
    const auto* words = a.packed.as<uint32_t>();
    for (int64_t first = 0; first < pairs; first += kDecodePairs)
        for (int64_t t = begin; t < end; ++t)
            for (int64_t p = first; p < lesser(first + kDecodePairs, pairs); ++p)
                decode(words + (p * tile_rows + t) * run_words(a.bits), a.codebook.multiplier,
                       a.y.row<Y>(t * kTile) + p * kRunColumns, a.y.row_stride);
}

void exl3_decode_rows(const Exl3DecodeArgs& a, int64_t begin, int64_t end) {
    if (a.y.dtype == DType::f16)
        decode_rows<f16>(a, begin, end);
    else
        decode_rows<float>(a, begin, end);
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void exl3_decode(Stream& s, const Exl3DecodeArgs& a) {
    const auto decode = EXL3_ISA_PICK(s, exl3_decode_rows);
    pool_of(s).parallel_for(a.packed.shape[0], kBlockTiles,
                            [&](int64_t b, int64_t e) { decode(a, b, e); });
}

}  // namespace exl3::cpu
#endif
