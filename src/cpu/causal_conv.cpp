#define EXL3_ISA_FILE "cpu/causal_conv.cpp"
#include "cpu/isa.h"

#include "cpu/recurrence.h"
#include "ops/slot_rows.h"

EXL3_ISA_BEGIN

// The input of a channel run at one place in time, before the batch (in the window) or in it.
struct ConvInput {
    const float* x;
    const float* gate;
};

inline ConvInput conv_input(const CausalConvArgs& a, const SlotRows& rows, int64_t t,
                            int64_t channel) {
    if (t >= rows.begin)
        return {a.x.row<float>(t) + channel,
                a.gate_in ? a.gate_in.row<float>(t) + channel : nullptr};
    if (rows.fresh) return {nullptr, nullptr};
    const int64_t past = a.window.shape[1];
    return {a.window.row<float>(rows.slot * past + past - (rows.begin - t)) + channel, nullptr};
}

inline F32 conv_load(const ConvInput& u, int64_t i, int64_t n) {
    if (!u.x) return F32::set(0);
    const F32 x = F32::load(u.x + i, n);
    return u.gate ? x * F32::load(u.gate + i, n) : x;
}

// One row of outputs for `n` channels.
void conv_row(const CausalConvArgs& a, const SlotRows& rows, int64_t t, int64_t channel,
              int64_t n) {
    // The taps that meet an input; those before a fresh sequence meet zeros.
    ConvInput inputs[kMaxConvKernel];
    const float* weights[kMaxConvKernel];
    const int64_t past = a.window.shape[1];
    int taps = 0;
    for (int64_t j = 0; j <= past; ++j) {
        inputs[taps] = conv_input(a, rows, t - past + j, channel);
        weights[taps] = a.weight.row<float>(j) + channel;
        taps += inputs[taps].x != nullptr;
    }
    float* y = a.y.row<float>(t) + channel;
    const float* bias = a.bias ? a.bias.as<float>() + channel : nullptr;
    const float* gate = a.gate_out ? a.gate_out.row<float>(t) + channel : nullptr;
    for (int64_t i = 0; i < n; i += F32::width) {
        const int64_t some = lesser(F32::width, n - i);
        F32 v = bias ? F32::load(bias + i, some) : F32::set(0);
        for (int j = 0; j < taps; ++j)
            v = fma(conv_load(inputs[j], i, some), F32::load(weights[j] + i, some), v);
        if (a.silu) v = v / (F32::set(1) + exp(F32::set(0) - v));
        (gate ? v * F32::load(gate + i, some) : v).store(y + i, some);
    }
}

// All rows of a sequence for a run of at most kConvChannels channels, then their window.
void conv_run(const CausalConvArgs& a, const SlotRows& rows, int64_t channel, int64_t n) {
    for (int64_t t = rows.begin; t < rows.end; ++t) conv_row(a, rows, t, channel, n);
    // Oldest first: what a place takes from the window lies behind it and is still there.
    const int64_t past = a.window.shape[1];
    for (int64_t j = 0; j < past; ++j) {
        const ConvInput u = conv_input(a, rows, rows.end - past + j, channel);
        float* to = a.window.row<float>(rows.slot * past + j) + channel;
        for (int64_t i = 0; i < n; i += F32::width) {
            const int64_t some = lesser(F32::width, n - i);
            conv_load(u, i, some).store(to + i, some);
        }
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void causal_conv(Stream& s, const CausalConvArgs& a) {
    const auto run = EXL3_ISA_PICK(s, conv_run);
    const int64_t channels = a.x.shape[1], sequences = a.seq.slots.shape[0];
    const int64_t runs = (channels + kConvChannels - 1) / kConvChannels;
    pool_of(s).parallel_for(sequences * runs, 1, [&](int64_t i, int64_t end) {
        for (; i < end; ++i) {
            const SlotRows rows = slot_rows(a.seq, i / runs);
            const int64_t channel = i % runs * kConvChannels;
            if (rows.begin < rows.end)
                run(a, rows, channel, lesser(kConvChannels, channels - channel));
        }
    });
}

}  // namespace exl3::cpu
#endif
