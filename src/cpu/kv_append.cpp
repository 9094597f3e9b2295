#define EXL3_ISA_FILE "cpu/kv_append.cpp"
#include "cpu/isa.h"

#include "ops/kv_group.h"
#include "ops/sequences.h"

EXL3_ISA_BEGIN

#include "cpu/kv_planes.h"

void kv_append_row(const float* x, f16* out, int64_t n) {
    // The limits come first: of two operands, one NaN, x86 returns the second.
    const F32 low = F32::set(-65504.0f), high = F32::set(65504.0f);
    int64_t i = 0;
    for (; i + F32::width <= n; i += F32::width)
        min(high, max(low, F32::load(x + i))).store(out + i);
    if (i < n) min(high, max(low, F32::load(x + i, n - i))).store(out + i, n - i);
}

// kv_encode for each group of a head, with its bits.
void kv_append_quantized(const float* x, int64_t dim, int bits, uint32_t* words, f16* scales) {
    const F32 low = F32::set(-65504.0f), high = F32::set(65504.0f);
    for (; dim > 0; dim -= kKvGroup, x += kKvGroup, words += bits, ++scales) {
        float y[kKvGroup];
        for (int i = 0; i < kKvGroup; i += F32::width)
            min(high, max(low, F32::load(x + i))).store(y + i);
        kv_rotate_groups(y, kKvGroup);
        kv_encode_rotated(y, bits, words, scales);
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {
namespace {

struct Kernel {
    decltype(&scalar::kv_append_row) convert;
    decltype(&scalar::kv_append_quantized) quantize;
};

void append(const ConstView& from, const View& plane, const View& scale, int64_t token,
            int64_t slot, const Kernel& kernel) {
    const int64_t heads = from.shape[1], dim = from.shape[2], groups = dim / kKvGroup;
    for (int64_t h = 0; h < heads; ++h) {
        const float* x = from.row<float>(token * heads + h);
        const int64_t row = slot * heads + h;
        if (scale)
            kernel.quantize(x, dim, kv_bits_of(plane, scale, dim),
                            plane.as<uint32_t>() + row * plane.shape[3],
                            scale.as<f16>() + row * groups);
        else
            kernel.convert(x, plane.as<f16>() + row * dim, dim);
    }
}

}  // namespace

void kv_append(Stream& s, const KvAppendArgs& a) {
    const Kernel kernel = {EXL3_ISA_PICK(s, kv_append_row), EXL3_ISA_PICK(s, kv_append_quantized)};
    const SequencesOnHost seq{a.seq};
    if (seq.count() == 0) return;
    const int64_t grain = 8192 / (a.k.shape[1] * a.k.shape[2]) + 1;
    pool_of(s).parallel_for(seq.end(seq.count() - 1), grain, [&](int64_t row, int64_t end) {
        int sequence = 0;
        for (; row < end; ++row) {
            while (seq.end(sequence) <= row) ++sequence;
            const int64_t slot = seq.slot(sequence, seq.position(sequence, static_cast<int>(row)));
            append(a.k, a.cache.k, a.cache.k_scale, row, slot, kernel);
            append(a.v, a.cache.v, a.cache.v_scale, row, slot, kernel);
        }
    });
}

}  // namespace exl3::cpu
#endif
