#include <algorithm>
#include <memory>
#include <vector>

#include "cpu/cpu.h"
#include "cpu/exl3_pass.h"
#include "cpu/uneven_loop.h"
#include "ops/group_jobs.h"

namespace exl3::cpu {
namespace {

// Costs of a column pair over one block of input channels, in products of one row: a single row is
// multiplied as it is decoded; more rows share one decoding (bench_exl3_linear, rows 1 to 16).
constexpr int64_t kSingleCost = 8, kDecodeCost = 6;

int64_t cost_of(int64_t rows) {
    return rows == 1 ? kSingleCost : kDecodeCost + rows;
}

/// Passes of several groups that run side by side.
class Passes {
public:
    Passes(Stream& s, const GroupedExl3LinearArgs& a)
        : s_(s), a_(a), kernels_(exl3_kernels_of(s, a.bits, a.codebook.kind)) {}

    void run() {
        const RowGroupsOnHost g{a_.groups};
        int64_t rows = 0;
        const auto scope = s_.workspace().scope();
        auto inner = std::make_unique<Workspace::Scope>(s_.workspace());
        for (int i = 0; i < g.count(); ++i) {
            const int64_t total = g.end(i) - g.begin(i);
            if (total == 0 || !group_job(a_, i).packed) continue;
            const int64_t parts = (total + kMostRows - 1) / kMostRows;
            for (int64_t p = 0; p < parts; ++p) {
                const int64_t first = total * p / parts, count = total * (p + 1) / parts - first;
                if (rows > 0 && (rows + count) * a_.n > kMostProducts) {
                    run_some();
                    rows = 0;
                    inner.reset();
                    inner = std::make_unique<Workspace::Scope>(s_.workspace());
                }
                add(i, g.begin(i), first, count);
                rows += count;
            }
        }
        run_some();
    }

private:
    struct Part {
        Exl3LinearArgs args;
        int begin = 0;      // entry of the group's first row
        int64_t first = 0;  // row of the group
        std::unique_ptr<Pass> pass;
    };

    void add(int group, int begin, int64_t first, int64_t rows) {
        auto part = std::make_unique<Part>();
        part->args = group_job(a_, group);
        part->args.y = slice_rows(part->args.y, first, rows);
        part->begin = begin;
        part->first = first;
        part->pass = std::make_unique<Pass>(take_pass(s_, part->args, kernels_, rows));
        parts_.push_back(std::move(part));
    }

    void run_some() {
        ThreadPool& pool = pool_of(s_);
        UnevenLoop rows, pairs, blocks;
        for (const auto& part : parts_) {
            const int64_t count = part->pass->x.rows;
            rows.add(count, 1);
            pairs.add(a_.n / kRunColumns, cost_of(count));
            blocks.add(count * (a_.n / kBlock), 1);
        }
        rows.run(pool,
                 [&](size_t i, int64_t begin, int64_t end) { quantize(*parts_[i], begin, end); });
        pairs.run(pool, [&](size_t i, int64_t begin, int64_t end) {
            multiply(*parts_[i]->pass, begin, end);
        });
        blocks.run(pool, [&](size_t i, int64_t begin, int64_t end) {
            finish(*parts_[i]->pass, begin, end);
        });
        parts_.clear();
    }

    void quantize(const Part& part, int64_t begin, int64_t end) const {
        const IntegerWeights weights = integer_weights(a_.codebook.kind);
        const RowGroupsOnHost g{a_.groups};
        Exl3LinearArgs one = part.args;
        one.x.row_stride = 0;  // every row of x is the one that this entry reads
        for (; begin < end; ++begin) {
            const auto entry = static_cast<int>(part.begin + part.first + begin);
            one.x.data = a_.x.row<float>(g.source(entry));
            kernels_.quantize_row(one, weights, 0, part.pass->x, begin);
        }
    }

    void multiply(const Pass& pass, int64_t begin, int64_t end) const {
        if (pass.x.rows == 1) {
            for (; begin < end; ++begin)
                kernels_.dot(pass.words(begin), pass.x, a_.codebook.multiplier,
                             pass.product(begin, 0));
            return;
        }
        // Many rows read their activations from the second-level cache, for a whole band at once.
        const int64_t step = pass.x.rows > kernels_.panel_rows ? kBlock / kRunColumns : 1;
        while (begin < end) {
            const int64_t next = std::min(end, (begin / step + 1) * step);
            pass.multiply(begin, next);
            begin = next;
        }
    }

    void finish(const Pass& pass, int64_t begin, int64_t end) const {
        for (; begin < end; ++begin) {
            const int64_t band = begin / pass.x.rows, r = begin % pass.x.rows;
            kernels_.finish(pass.a, pass.products + begin * kBlock, pass.x.shift[r], r,
                            band * kBlock);
        }
    }

    Stream& s_;
    const GroupedExl3LinearArgs& a_;
    const Exl3Kernels kernels_;
    std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace

// A row's result is that of exl3_linear, bit for bit, whatever the groups and threads. The groups'
// products run side by side: threads meet three times however many groups there are, and the words
// of a group are read once for all its rows (up to kMostRows).
void grouped_exl3_linear(Stream& s, const GroupedExl3LinearArgs& a) {
    Passes(s, a).run();
}

}  // namespace exl3::cpu
