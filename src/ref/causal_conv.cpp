#include <cmath>
#include <vector>

#include "core/device.h"
#include "ops/recurrence.h"
#include "ops/slot_rows.h"

namespace exl3::ref {
namespace {

// One channel of one sequence: `past` inputs of the window, then those of its rows.
void convolve(const CausalConvArgs& a, const SlotRows& rows, int64_t c) {
    const int64_t past = a.window.shape[1];
    std::vector<float> u;
    for (int64_t j = 0; j < past; ++j)
        u.push_back(rows.fresh ? 0 : a.window.row<float>(rows.slot * past + j)[c]);
    for (int64_t t = rows.begin; t < rows.end; ++t)
        u.push_back(a.x.row<float>(t)[c] * (a.gate_in ? a.gate_in.row<float>(t)[c] : 1.0f));
    for (int64_t t = rows.begin; t < rows.end; ++t) {
        double sum = a.bias ? a.bias.as<float>()[c] : 0.0;
        for (int64_t j = 0; j <= past; ++j)
            sum += static_cast<double>(a.weight.row<float>(j)[c]) *
                   u[static_cast<size_t>(t - rows.begin + j)];
        if (a.silu) sum /= 1 + std::exp(-sum);
        if (a.gate_out) sum *= a.gate_out.row<float>(t)[c];
        a.y.row<float>(t)[c] = static_cast<float>(sum);
    }
    for (int64_t j = 0; j < past; ++j)
        a.window.row<float>(rows.slot * past + j)[c] = u[u.size() - static_cast<size_t>(past - j)];
}

}  // namespace

void causal_conv(Stream&, const CausalConvArgs& a) {
    for (int64_t s = 0; s < a.seq.slots.shape[0]; ++s) {
        const SlotRows rows = slot_rows(a.seq, s);
        if (rows.begin == rows.end) continue;
        for (int64_t c = 0; c < a.x.shape[1]; ++c) convolve(a, rows, c);
    }
}

}  // namespace exl3::ref
