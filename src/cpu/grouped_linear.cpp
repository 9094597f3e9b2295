#include <algorithm>
#include <vector>

#include "cpu/cpu.h"
#include "cpu/linear.h"
#include "cpu/uneven_loop.h"
#include "ops/group_jobs.h"

namespace exl3::cpu {
namespace {

/// Products that run side by side: one loop packs the rows of all of them, one multiplies, so that
/// threads meet twice however many there are. Weights are read once for all rows of a product.
class SideBySide {
public:
    explicit SideBySide(Stream& s) : s_(s), kernels_(linear_kernels_of(s)) {}

    /// @param source  row of job.x for each row of job.y; null: the same
    void add(const LinearArgs& job, const int32_t* source = nullptr) {
        // Reading the weights of a tile costs about as much as multiplying this many rows by them.
        constexpr int64_t kReadCost = 4;
        LinearPlan& p = plans_.emplace_back(job, kernels_.width, kernels_.rows);
        p.x = s_.workspace().take(DType::f32, {p.rows, p.padded_in}).as<float>();
        p.source = source;
        jobs_.push_back(job);
        pack_.add(p.blocks, kernels_.rows);
        multiply_.add((job.y.shape[1] + kLinearOutputs - 1) / kLinearOutputs, kReadCost + p.rows);
    }

    void run() const {
        pack_.run(pool_of(s_), [&](size_t i, int64_t begin, int64_t end) {
            for (; begin < end; ++begin) kernels_.pack(jobs_[i], plans_[i], begin);
        });
        multiply_.run(pool_of(s_), [&](size_t i, int64_t begin, int64_t end) {
            kernels_.outputs(jobs_[i], plans_[i], begin * kLinearOutputs,
                             std::min(end * kLinearOutputs, jobs_[i].y.shape[1]));
        });
    }

private:
    Stream& s_;
    const LinearKernels kernels_;
    std::vector<LinearArgs> jobs_;
    std::vector<LinearPlan> plans_;
    UnevenLoop pack_, multiply_;
};

}  // namespace

void grouped_linear(Stream& s, const GroupedLinearArgs& a) {
    const RowGroupsOnHost g{a.groups};
    const auto scope = s.workspace().scope();
    SideBySide products(s);
    for (int i = 0; i < g.count(); ++i) {
        if (g.begin(i) == g.end(i)) continue;
        LinearArgs job = group_job(a, i);
        if (!job.weight) continue;
        if (a.groups.source) {
            products.add(job, a.groups.source.as<int32_t>() + g.begin(i));
        } else {
            job.x = slice_rows(a.x, g.begin(i), job.y.shape[0]);
            products.add(job);
        }
    }
    products.run();
}

void head_linear(Stream& s, const HeadLinearArgs& a) {
    if (a.x.shape[0] == 0) return;
    const auto scope = s.workspace().scope();
    SideBySide products(s);
    for (int64_t h = 0; h < a.x.shape[1]; ++h) products.add(head_job(a, h));
    products.run();
}

}  // namespace exl3::cpu
