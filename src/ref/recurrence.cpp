#include <cmath>
#include <vector>

#include "core/device.h"
#include "ops/recurrence.h"
#include "ops/slot_rows.h"

namespace exl3::ref {
namespace {

std::vector<double> head_of(ConstView x, int64_t row, int64_t head, int64_t dim, double eps) {
    const float* from = x.row<float>(row) + head * dim;
    std::vector<double> v(from, from + dim);
    if (eps <= 0) return v;
    double sum = eps;
    for (const double f : v) sum += f * f;
    for (double& f : v) f /= std::sqrt(sum);
    return v;
}

// One head of one sequence, token after token.
void run_head(const RecurrenceArgs& a, const SlotRows& rows, int64_t head) {
    const Shape& shape = a.memory.shape;
    const int64_t heads = shape[1], keys = shape[2], values = shape[3];
    const int64_t key_head = head / (heads / a.key_heads);
    float* stored = a.memory.row<float>((rows.slot * heads + head) * keys);
    std::vector<double> state(static_cast<size_t>(keys * values));
    if (!rows.fresh) state.assign(stored, stored + keys * values);
    const double skip = a.skip ? a.skip.as<float>()[head] : 0.0;
    for (int64_t t = rows.begin; t < rows.end; ++t) {
        const auto q = head_of(a.q, t, key_head, keys, a.normalize_eps);
        const auto k = head_of(a.k, t, key_head, keys, a.normalize_eps);
        const float* v = a.v.row<float>(t) + head * values;
        float* y = a.y.row<float>(t) + head * values;
        const double decay = std::exp(static_cast<double>(a.log_decay.row<float>(t)[head]));
        const double write = a.write.row<float>(t)[head];
        for (int64_t j = 0; j < values; ++j) {
            const auto s = [&](int64_t i) -> double& {
                return state[static_cast<size_t>(i * values + j)];
            };
            double seen = 0;
            for (int64_t i = 0; i < keys; ++i) {
                s(i) *= decay;
                seen += s(i) * k[static_cast<size_t>(i)];
            }
            const double u = write * (v[j] - (a.delta ? seen : 0));
            double sum = 0;
            for (int64_t i = 0; i < keys; ++i) {
                s(i) += k[static_cast<size_t>(i)] * u;
                sum += s(i) * q[static_cast<size_t>(i)];
            }
            y[j] = static_cast<float>(a.scale * sum + skip * v[j]);
        }
    }
    for (size_t i = 0; i < state.size(); ++i) stored[i] = static_cast<float>(state[i]);
}

}  // namespace

void recurrence(Stream&, const RecurrenceArgs& a) {
    for (int64_t s = 0; s < a.seq.slots.shape[0]; ++s) {
        const SlotRows rows = slot_rows(a.seq, s);
        if (rows.begin == rows.end) continue;
        for (int64_t head = 0; head < a.memory.shape[1]; ++head) run_head(a, rows, head);
    }
}

}  // namespace exl3::ref
