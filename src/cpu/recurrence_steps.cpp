#define EXL3_ISA_FILE "cpu/recurrence_steps.cpp"
#include "cpu/isa.h"

#include "cpu/recurrence.h"

EXL3_ISA_BEGIN

// Copies a head of q or k, divided by its length where the op asks for it, times `factor`.
inline void load_key(const float* from, int64_t dim, float eps, float factor, float* to) {
    if (eps > 0) {
        F32 acc = F32::set(0);
        for (int64_t i = 0; i < dim; i += F32::width) {
            const F32 x = F32::load(from + i, lesser(F32::width, dim - i));
            acc = fma(x, x, acc);
        }
        factor /= std::sqrt(sum(acc) + eps);
    }
    for (int64_t i = 0; i < dim; i += F32::width) {
        const int64_t n = lesser(F32::width, dim - i);
        (F32::load(from + i, n) * F32::set(factor)).store(to + i, n);
    }
}

struct RecurrenceStep {
    const float* q = nullptr;  // scaled
    const float* k = nullptr;
    int64_t keys = 0, values = 0;
    float decay = 1, write = 0, skip = 0;
    bool delta = false;
};

// One token of V vectors of value channels: the state is read twice where the delta rule asks what
// it holds for k, once otherwise, and written once.
template <int V>
EXL3_INLINE void recurrence_step(const RecurrenceStep& p, float* state, const float* v, float* y,
                                 int64_t last) {
    const auto load = [&](const float* at, int j) {
        return j < V - 1 ? F32::load(at + j * F32::width) : F32::load(at + j * F32::width, last);
    };
    F32 u[V], out[V];
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) u[j] = out[j] = F32::set(0);
    if (p.delta)
        for (int64_t i = 0; i < p.keys; ++i) {
            const F32 k = F32::set(p.k[i]);
#pragma GCC unroll 8
            for (int j = 0; j < V; ++j) u[j] = fma(k, load(state + i * p.values, j), u[j]);
        }
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) u[j] = F32::set(p.write) * (load(v, j) - F32::set(p.decay) * u[j]);
    const F32 decay = F32::set(p.decay);
    for (int64_t i = 0; i < p.keys; ++i) {
        const F32 k = F32::set(p.k[i]), q = F32::set(p.q[i]);
        float* row = state + i * p.values;
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) {
            const F32 s = fma(k, u[j], decay * load(row, j));
            j < V - 1 ? s.store(row + j * F32::width) : s.store(row + j * F32::width, last);
            out[j] = fma(q, s, out[j]);
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) {
        const F32 o = fma(F32::set(p.skip), load(v, j), out[j]);
        j < V - 1 ? o.store(y + j * F32::width) : o.store(y + j * F32::width, last);
    }
}

// As many columns at a time as there are registers for u and the sums.
inline constexpr int kStepVectors = F32::width == 16 ? 8 : 4;

template <int V = kStepVectors>
void recurrence_columns(const RecurrenceStep& p, float* state, const float* v, float* y) {
    constexpr int64_t kColumns = V * F32::width;
    int64_t c = 0;
    for (; c + kColumns <= p.values; c += kColumns)
        recurrence_step<V>(p, state + c, v + c, y + c, F32::width);
    for (; c < p.values; c += F32::width)
        recurrence_step<1>(p, state + c, v + c, y + c, lesser(F32::width, p.values - c));
}

void recurrence_token(const RecurrenceStep& p, float* state, const float* v, float* y) {
    // Heads narrower than a full block: half of it at a time.
    if (p.values % (kStepVectors * F32::width) == 0)
        recurrence_columns(p, state, v, y);
    else if (p.values % (kStepVectors / 2 * F32::width) == 0)
        recurrence_columns<kStepVectors / 2>(p, state, v, y);
    else
        recurrence_columns<1>(p, state, v, y);
}

void run_head(const RecurrenceArgs& a, const SlotRows& rows, int64_t head, float* scratch) {
    const int64_t heads = a.memory.shape[1], keys = a.memory.shape[2], values = a.memory.shape[3];
    const int64_t key_head = head / (heads / a.key_heads);
    float* state = a.memory.row<float>((rows.slot * heads + head) * keys);
    if (rows.fresh)
        for (int64_t i = 0; i < keys * values; ++i) state[i] = 0;
    float *q = scratch, *k = scratch + keys;
    for (int64_t t = rows.begin; t < rows.end; ++t) {
        load_key(a.q.row<float>(t) + key_head * keys, keys, a.normalize_eps, a.scale, q);
        load_key(a.k.row<float>(t) + key_head * keys, keys, a.normalize_eps, 1, k);
        const RecurrenceStep step{.q = q,
                                  .k = k,
                                  .keys = keys,
                                  .values = values,
                                  .decay = std::exp(a.log_decay.row<float>(t)[head]),
                                  .write = a.write.row<float>(t)[head],
                                  .skip = a.skip ? a.skip.as<float>()[head] : 0,
                                  .delta = a.delta};
        recurrence_token(step, state, a.v.row<float>(t) + head * values,
                         a.y.row<float>(t) + head * values);
    }
}

void run_steps(const RecurrenceArgs& a, const SlotRows& rows, int64_t head, int64_t count,
               float* scratch) {
    for (int64_t i = 0; i < count; ++i) run_head(a, rows, head + i, scratch);
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

RecurrenceKernel recurrence_steps(const Stream& s) {
    return EXL3_ISA_PICK(s, run_steps);
}

int64_t recurrence_steps_scratch(const RecurrenceArgs& a) {
    return 2 * a.memory.shape[2];
}

}  // namespace exl3::cpu
#endif
