#define EXL3_ISA_FILE "cpu/kv_append.cpp"
#include "cpu/isa.h"

#include "ops/sequences.h"

EXL3_ISA_BEGIN

void kv_append_row(const float* x, f16* out, int64_t n) {
    // The limits come first: of two operands, one NaN, x86 returns the second.
    const F32 low = F32::set(-65504.0f), high = F32::set(65504.0f);
    int64_t i = 0;
    for (; i + F32::width <= n; i += F32::width)
        min(high, max(low, F32::load(x + i))).store(out + i);
    if (i < n) min(high, max(low, F32::load(x + i, n - i))).store(out + i, n - i);
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {
namespace {

void append(const ConstView& from, const View& cache, int64_t token, int64_t slot,
            void (*convert)(const float*, f16*, int64_t)) {
    const int64_t heads = from.shape[1], dim = from.shape[2];
    for (int64_t h = 0; h < heads; ++h)
        convert(from.row<float>(token * heads + h), cache.as<f16>() + (slot * heads + h) * dim,
                dim);
}

}  // namespace

void kv_append(Stream& s, const KvAppendArgs& a) {
    const auto convert = EXL3_ISA_PICK(s, kv_append_row);
    const SequencesOnHost seq{a.seq};
    if (seq.count() == 0) return;
    const int64_t grain = 8192 / (a.k.shape[1] * a.k.shape[2]) + 1;
    pool_of(s).parallel_for(seq.end(seq.count() - 1), grain, [&](int64_t row, int64_t end) {
        int sequence = 0;
        for (; row < end; ++row) {
            while (seq.end(sequence) <= row) ++sequence;
            const int64_t slot = seq.slot(sequence, seq.position(sequence, static_cast<int>(row)));
            append(a.k, a.cache.k, row, slot, convert);
            append(a.v, a.cache.v, row, slot, convert);
        }
    });
}

}  // namespace exl3::cpu
#endif
