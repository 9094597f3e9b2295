#include "cpu/recurrence.h"

#include <algorithm>

#include "cpu/cpu.h"

namespace exl3::cpu {

void run_recurrence(Stream& s, const RecurrenceArgs& a, int64_t chunks_from) {
    const RecurrenceKernel steps = recurrence_steps(s), chunks = recurrence_chunks(s);
    const int64_t heads = a.memory.shape[1], shared = heads / a.key_heads,
                  sequences = a.seq.slots.shape[0];
    ThreadPool& pool = pool_of(s);
    // Heads that share a key go together, so that what depends on it is computed once, unless
    // threads would have nothing to do. How they are grouped changes no result.
    int64_t group = shared;
    const auto parts = [&] { return (shared + group - 1) / group; };
    while (group > 1 && sequences * a.key_heads * parts() < pool.threads()) group = (group + 1) / 2;
    const int64_t each = parts(), items = sequences * a.key_heads * each;
    if (items == 0) return;
    // One piece for each thread, so that a piece's number names its scratch.
    const int64_t grain = (items + pool.threads() - 1) / pool.threads();
    const int64_t need = std::max(recurrence_steps_scratch(a), recurrence_chunks_scratch(a, group));
    const auto scope = s.workspace().scope();
    float* scratch =
        s.workspace().take(DType::f32, {(items + grain - 1) / grain, need}).as<float>();
    pool.parallel_for(items, grain, [&](int64_t begin, int64_t end) {
        float* mine = scratch + begin / grain * need;
        for (int64_t i = begin; i < end; ++i) {
            const SlotRows rows = slot_rows(a.seq, i / (a.key_heads * each));
            const int64_t count = rows.end - rows.begin, part = i % each * group;
            const int64_t head = i / each % a.key_heads * shared + part;
            if (count == 0) continue;
            (count < chunks_from ? steps : chunks)(a, rows, head, std::min(group, shared - part),
                                                   mine);
        }
    });
}

void recurrence(Stream& s, const RecurrenceArgs& a) {
    constexpr int64_t kChunksFrom = 8;
    run_recurrence(s, a, kChunksFrom);
}

}  // namespace exl3::cpu
