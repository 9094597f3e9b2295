// Cuts attention into tasks, runs them on the pool and merges what was cut along the keys.
#define EXL3_ISA_FILE "cpu/attention.cpp"
#include "cpu/isa.h"

#include <algorithm>
#include <vector>

#include "cpu/attention.h"

EXL3_ISA_BEGIN

void attention_finish(const float* records, int count, int64_t dim, const float* sink, float* y) {
    const int64_t step = dim + 2;
    float top = sink ? *sink : records[dim];
    for (int c = 0; c < count; ++c)
        top = top > records[c * step + dim] ? top : records[c * step + dim];
    float total = sink ? std::exp(*sink - top) : 0;
    for (int c = 0; c < count; ++c)
        total += std::exp(records[c * step + dim] - top) * records[c * step + dim + 1];
    for (int c = 0; c < count; ++c) {
        const float* record = records + c * step;
        const F32 share = F32::set(std::exp(record[dim] - top) / total);
        for (int64_t i = 0; i < dim; i += F32::width) {
            const int64_t n = lesser(F32::width, dim - i);
            const F32 v = F32::load(record + i, n) * share;
            (c == 0 ? v : v + F32::load(y + i, n)).store(y + i, n);
        }
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {
namespace {

struct TaskLists {
    std::vector<AttentionTask> decode, prefill;
    struct Cut {
        int sequence, rows, chunks;
        const float* records;
    };
    std::vector<Cut> cuts;  // sequences whose records are to be merged
};

// The tasks of one call. Cuts follow the batch alone, never the number of threads.
class Tasks {
public:
    // Fills `lists`, whose memory is used again from call to call.
    Tasks(const AttentionArgs& a, Workspace& workspace, int prefill_lanes, TaskLists& lists)
        : decode(lists.decode),
          prefill(lists.prefill),
          cuts(lists.cuts),
          a_(a),
          workspace_(workspace),
          prefill_lanes_(prefill_lanes) {
        decode.clear();
        prefill.clear();
        cuts.clear();
        const SequencesOnHost seq{a.seq};
        for (int s = 0; s < seq.count(); ++s) {
            const int rows = seq.end(s) - seq.begin(s);
            if (rows == 0) continue;
            const int position = seq.position(s, seq.begin(s));
            if (rows * group() <= kDecodeLaneLimit)
                add_decode(s, position, rows);
            else
                add_prefill(s, position, rows);
        }
    }

    std::vector<AttentionTask>&decode, &prefill;
    std::vector<TaskLists::Cut>& cuts;

private:
    int first_key(int position) const {
        return a_.window > 0 ? std::max(0, position - a_.window + 1) : 0;
    }
    int group() const { return static_cast<int>(a_.q.shape[1] / kv_heads()); }
    int kv_heads() const { return static_cast<int>(a_.cache.kv_heads()); }

    float* records(int sequence, int rows, int chunks) {
        if (chunks == 1) return nullptr;
        const View v =
            workspace_.take(DType::f32, {rows * a_.q.shape[1], chunks, a_.q.shape[2] + 2});
        cuts.push_back({sequence, rows, chunks, v.as<float>()});
        return v.as<float>();
    }

    void add_decode(int s, int position, int rows) {
        // A whole block, if masked in part: then the order of sums does not depend on the rows
        // beside.
        const int first = first_key(position) / kBlockKeys * kBlockKeys, last = position + rows - 1;
        const int begin = first / kDecodeKeys, chunks = last / kDecodeKeys - begin + 1;
        float* out = records(s, rows, chunks);
        for (int c = 0; c < chunks; ++c)
            for (int h = 0; h < kv_heads(); ++h)
                decode.push_back({.sequence = s,
                                  .kv_head = h,
                                  .lane_end = rows * group(),
                                  .key_begin = std::max(first, (begin + c) * kDecodeKeys),
                                  .key_end = std::min(last + 1, (begin + c + 1) * kDecodeKeys),
                                  .chunk = c,
                                  .chunks = chunks,
                                  .records = out});
    }

    void add_prefill(int s, int position, int rows) {
        const int lanes = rows * group(), tiles = (lanes + prefill_lanes_ - 1) / prefill_lanes_;
        // Many lanes are tasks enough, and their records would be large.
        const int keys = lanes > kCutLanes ? INT32_MAX : kPrefillKeys;
        const int begin = first_key(position) / keys;
        const int chunks = (position + rows - 1) / keys - begin + 1;
        float* out = records(s, rows, chunks);
        for (int h = 0; h < kv_heads(); ++h)
            for (int i = 0; i < tiles; ++i) {
                // Later tiles see more keys: taking them from both ends in turn evens out any run
                // of tasks.
                const int tile = i % 2 ? tiles - 1 - i / 2 : i / 2;
                AttentionTask t{.sequence = s, .kv_head = h, .chunks = chunks, .records = out};
                t.lane_begin = tile * prefill_lanes_;
                t.lane_end = std::min(lanes, t.lane_begin + prefill_lanes_);
                const int low = first_key(position + t.lane_begin / group());
                const int high = position + (t.lane_end - 1) / group() + 1;
                for (t.chunk = 0; t.chunk < chunks; ++t.chunk) {
                    const int64_t from = static_cast<int64_t>(begin + t.chunk) * keys;
                    t.key_begin = static_cast<int>(std::max<int64_t>(low, from));
                    t.key_end = static_cast<int>(std::min<int64_t>(high, from + keys));
                    prefill.push_back(t);
                }
            }
    }

    const AttentionArgs& a_;
    Workspace& workspace_;
    const int prefill_lanes_;
};

void run(Stream& s, const AttentionArgs& a, const AttentionKernel& k, AttentionFinish finish,
         const std::vector<AttentionTask>& tasks) {
    if (tasks.empty()) return;
    // One piece per thread, so a piece owns a part of the scratch.
    const auto count = static_cast<int64_t>(tasks.size());
    const int64_t pieces = std::min<int64_t>(pool_of(s).threads(), count);
    const View scratch = s.workspace().take(DType::f32, {pieces, k.scratch(a.q.shape[2])});
    pool_of(s).parallel_for(pieces, 1, [&](int64_t piece, int64_t) {
        for (int64_t t = count * piece / pieces; t < count * (piece + 1) / pieces; ++t)
            k.run(a, tasks[static_cast<size_t>(t)], finish, scratch.row<float>(piece));
    });
}

}  // namespace

void attention(Stream& s, const AttentionArgs& a) {
    const auto scope = s.workspace().scope();
    const AttentionFinish finish = EXL3_ISA_PICK(s, attention_finish);
    const AttentionKernel decode = decode_kernel(s), prefill = prefill_kernel(s);
    static thread_local TaskLists lists;
    const Tasks tasks(a, s.workspace(), prefill.lanes, lists);
    run(s, a, decode, finish, tasks.decode);
    run(s, a, prefill, finish, tasks.prefill);

    const int64_t heads = a.q.shape[1], dim = a.q.shape[2];
    for (const auto& cut : tasks.cuts) {
        const int64_t first = a.seq.q_start.as<int32_t>()[cut.sequence] * heads;
        pool_of(s).parallel_for(cut.rows * heads, 8, [&](int64_t i, int64_t end) {
            for (; i < end; ++i)
                finish(cut.records + i * cut.chunks * (dim + 2), cut.chunks, dim,
                       a.sinks ? a.sinks.as<float>() + i % heads : nullptr,
                       a.y.row<float>(first + i));
        });
    }
}

}  // namespace exl3::cpu
#endif
