#define EXL3_ISA_FILE "cpu/exl3_linear.cpp"
#define EXL3_ISA_TIERS 4
#include "cpu/isa.h"

#include <algorithm>

#include "core/load.h"
#include "cpu/exl3_pass.h"
#include "cpu/exl3_runs.h"
#include "ops/exl3.h"

EXL3_ISA_BEGIN

#include "cpu/hadamard128.h"
#if EXL3_ISA_PASS == 0
#include "cpu/exl3_products_scalar.h"
#elif EXL3_ISA_PASS == 1
#include "cpu/exl3_products_avx2.h"
#else
#include "cpu/exl3_products_avx512.h"
#endif

// The 128 values of x * suh from channel `begin`, zero past the width of x.
inline void scaled_block(const float* x, int64_t in, const f16* suh, int64_t begin, float* out) {
    const int64_t count = lesser(in - begin, kBlock);
    int64_t i = 0;
    for (; i + F32::width <= count; i += F32::width)
        (F32::load(x + begin + i) * F32::load(suh + begin + i)).store(out + i);
    for (; i < count; ++i) out[i] = x[begin + i] * to_float(suh[begin + i]);
    for (; i < kBlock; ++i) out[i] = 0;
}

// Rounds a block to integers of at most `limit`. Returns the scale: value = scale * integer. A
// block with a NaN or an infinity gets the scale NaN, which reaches every output of the row.
inline float quantize_block(const float* v, int32_t limit, int16_t* q, int32_t* sum_of_q) {
    F32 most = F32::set(0), spoiled = F32::set(0);
    for (int i = 0; i < kBlock; i += F32::width) {
        const F32 x = F32::load(v + i);
        most = max(most, abs(x));
        spoiled = fma(x, F32::set(0), spoiled);
    }
    const float peak = max_of(most);
    const bool finite = sum(spoiled) == 0;
    // Below this 1 / scale would overflow, and what the block adds is no normal number either.
    const bool zero = !finite || peak < 1e-33f;
    const float scale = peak * (1.0f / static_cast<float>(limit));
    const F32 inverse = F32::set(zero ? 0 : 1 / scale);
    F32 total = F32::set(0);
    for (int i = 0; i < kBlock; i += F32::width) {
        const F32 x = round(F32::load(v + i) * inverse);
        total = total + x;  // integers below 2^24: exact in any order
        alignas(64) float rounded[F32::width];
        x.store(rounded);
        for (int j = 0; j < F32::width; ++j)
            q[i + j] = finite ? static_cast<int16_t>(static_cast<int32_t>(rounded[j])) : int16_t{0};
    }
    *sum_of_q = finite ? static_cast<int32_t>(sum(total)) : 0;
    return finite ? (zero ? 0 : scale) : __builtin_nanf("");
}

// Fills the part of `rows` that belongs to row r.
void quantize_row(const Exl3LinearArgs& a, const IntegerWeights& weights, int64_t first_row,
                  const QuantizedRows& rows, int64_t r) {
    alignas(64) float v[kBlock];
    float shift = 0;
    for (int64_t b = 0; b < rows.blocks; ++b) {
        scaled_block(a.x.row<float>(first_row + r), a.x.shape[1], a.suh.as<f16>(), b * kBlock, v);
        hadamard128_unscaled(v);
        const int64_t at = b * rows.rows + r;
        int16_t* q = rows.q + at * kBlock;
        int32_t sum_of_q = 0;
        const float scale = quantize_block(v, weights.activation_limit, q, &sum_of_q) *
                            (weights.unit * kHadamardScale);
        rows.scale[at] = scale;
        rows.start[at] = -weights.centre * sum_of_q;
        shift -= scale * weights.fraction * static_cast<float>(sum_of_q);
        if (rows.twice)
            for (int i = 0; i < kBlock; ++i)
                rows.twice[b * kBlock + i] =
                    static_cast<int32_t>(static_cast<uint16_t>(q[i]) * 0x10001u);
    }
    rows.shift[r] = shift;
}

// Undoes the run order of 128 products, transforms, scales and adds the bias.
// y[0 : count] = (products + shift) H * svh + bias
template <typename B>
void finish_block(const float* products, float shift, const f16* svh, const B* bias, float* y,
                  int64_t count) {
    alignas(64) float v[kBlock];
    for (int group = 0; group < kBlock / 8; ++group) {
        // Run order swaps the two bits above the lowest three: column half and tile.
        const int from = (group & ~3) | (group & 1) << 1 | (group & 2) >> 1;
        for (int i = 0; i < 8; ++i) v[group * 8 + i] = products[from * 8 + i] + shift;
    }
    hadamard128_unscaled(v);
    const auto finished = [&](int64_t i, int64_t n) {
        const F32 scaled = F32::load(v + i, n) * (F32::load(svh + i, n) * F32::set(kHadamardScale));
        return bias ? scaled + F32::load(bias + i, n) : scaled;
    };
    int64_t i = 0;
    for (; i + F32::width <= count; i += F32::width) finished(i, F32::width).store(y + i);
    if (i < count) finished(i, count - i).store(y + i, count - i);
}

void finish(const Exl3LinearArgs& a, const float* products, float shift, int64_t row,
            int64_t column) {
    const int64_t count = lesser(kBlock, a.y.shape[1] - column);
    if (count <= 0) return;
    const f16* svh = a.svh.as<f16>() + column;
    float* y = a.y.row<float>(row) + column;
    if (!a.bias) return finish_block<float>(products, shift, svh, nullptr, y, count);
    switch (a.bias.dtype) {
        case DType::f16:
            return finish_block(products, shift, svh, a.bias.as<f16>() + column, y, count);
        case DType::bf16:
            return finish_block(products, shift, svh, a.bias.as<bf16>() + column, y, count);
        default: return finish_block(products, shift, svh, a.bias.as<float>() + column, y, count);
    }
}

template <int R>
void multiply_up_to(const int32_t* panel, int rows, const int16_t* q, const int32_t* start,
                    const float* scale, float* c, int64_t c_stride) {
    if (rows == R) return multiply_rows<R>(panel, q, start, scale, c, c_stride);
    if constexpr (R > 1) multiply_up_to<R - 1>(panel, rows, q, start, scale, c, c_stride);
}

template <int K, CodebookKind C>
constexpr Exl3Kernels kernels_of() {
    return {.dot = dot_pair<K, C>,
            .panel = make_panel<K, C>,
            .multiply = multiply_up_to<kPanelRows>,
            .panel_rows = kPanelRows};
}

template <CodebookKind C>
Exl3Kernels kernels_for(int bits) {
    static constexpr Exl3Kernels kByBits[] = {
        kernels_of<1, C>(), kernels_of<2, C>(), kernels_of<3, C>(), kernels_of<4, C>(),
        kernels_of<5, C>(), kernels_of<6, C>(), kernels_of<7, C>(), kernels_of<8, C>()};
    return kByBits[bits - 1];
}

Exl3Kernels exl3_kernels(int bits, CodebookKind kind) {
    Exl3Kernels k = kind == CodebookKind::mul1  ? kernels_for<CodebookKind::mul1>(bits)
                    : kind == CodebookKind::mcg ? kernels_for<CodebookKind::mcg>(bits)
                                                : kernels_for<CodebookKind::three_inst>(bits);
    k.quantize_row = quantize_row;
    k.finish = finish;
    return k;
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {
namespace {

void run_pass(Stream& s, const Pass& pass) {
    const QuantizedRows& x = pass.x;
    const int64_t n = pass.a.packed.shape[1] * kTile, pairs = n / kRunColumns;
    ThreadPool& pool = pool_of(s);
    const IntegerWeights weights = integer_weights(pass.a.codebook.kind);
    pool.parallel_for(x.rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
            pass.kernels.quantize_row(pass.a, weights, pass.first_row, x, r);
    });
    if (x.rows == 1) {
        pool.parallel_for(pairs, 1, [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; ++p)
                pass.kernels.dot(pass.words(p), x, pass.a.codebook.multiplier, pass.product(p, 0));
        });
    } else {
        // Many rows read their activations from the second-level cache, for a whole band at once;
        // few rows, or few bands, are cut finer to feed every thread.
        const bool bands = x.rows > pass.kernels.panel_rows &&
                           n / kBlock >= 2 * static_cast<int64_t>(pool.threads());
        pool.parallel_for(pairs, bands ? kBlock / kRunColumns : 1,
                          [&](int64_t begin, int64_t end) { pass.multiply(begin, end); });
    }
    // A finished block is 50 ns: fewer than 32 are not worth waking a thread.
    pool.parallel_for(x.rows * (n / kBlock), 32, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t band = i / x.rows, r = i % x.rows;
            pass.kernels.finish(pass.a, pass.products + i * kBlock, x.shift[r], pass.first_row + r,
                                band * kBlock);
        }
    });
}

}  // namespace

Exl3Kernels exl3_kernels_of(const Stream& s, int bits, CodebookKind kind) {
    return EXL3_ISA_PICK(s, exl3_kernels)(bits, kind);
}

Pass take_pass(Stream& s, const Exl3LinearArgs& a, const Exl3Kernels& kernels, int64_t rows) {
    const int64_t k = a.packed.shape[0] * kTile, n = a.packed.shape[1] * kTile;
    const auto take = [&](DType dtype, Shape shape) { return s.workspace().take(dtype, shape); };
    QuantizedRows x{.rows = rows, .blocks = k / kBlock};
    x.q = take(DType::i16, {rows, k}).as<int16_t>();
    x.twice = rows == 1 ? take(DType::i32, {k}).as<int32_t>() : nullptr;
    x.start = take(DType::i32, {rows, x.blocks}).as<int32_t>();
    x.scale = take(DType::f32, {rows, x.blocks}).as<float>();
    x.shift = take(DType::f32, {rows}).as<float>();
    return {a, kernels, x, take(DType::f32, {rows, n}).as<float>(), 0};
}

// A row's result is the same bit for bit whatever the tier, the number of threads and the rows
// around it: products are exact sums of integers within a block, and blocks are added in order.
void exl3_linear(Stream& s, const Exl3LinearArgs& a) {
    const int64_t rows = a.x.shape[0], n = a.packed.shape[1] * kTile;
    if (rows == 0 || a.y.shape[1] == 0) return;
    const Exl3Kernels kernels = exl3_kernels_of(s, a.bits, a.codebook.kind);
    const auto scope = s.workspace().scope();
    const int64_t most = std::min(rows, std::clamp<int64_t>(kMostProducts / n, 32, kMostRows));
    Pass pass = take_pass(s, a, kernels, most);
    const int64_t passes = (rows + most - 1) / most;
    for (int64_t p = 0; p < passes; ++p) {
        pass.first_row = rows * p / passes;
        pass.x.rows = rows * (p + 1) / passes - pass.first_row;
        run_pass(s, pass);
    }
}

}  // namespace exl3::cpu
#endif
