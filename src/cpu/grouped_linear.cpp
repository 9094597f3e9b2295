#include <algorithm>
#include <vector>

#include "cpu/cpu.h"
#include "cpu/linear.h"
#include "cpu/uneven_loop.h"
#include "ops/group_jobs.h"

namespace exl3::cpu {

// The groups' products side by side: one loop packs the rows of all of them, one multiplies, so
// that threads meet twice however many groups there are. Weights are read once for all rows of a
// group.
void grouped_linear(Stream& s, const GroupedLinearArgs& a) {
    const RowGroupsOnHost g{a.groups};
    const LinearKernels k = linear_kernels_of(s);
    const auto scope = s.workspace().scope();
    std::vector<LinearArgs> jobs;
    std::vector<LinearPlan> plans;
    UnevenLoop pack, multiply;
    const int64_t tiles = (a.y.shape[1] + kLinearOutputs - 1) / kLinearOutputs;
    // Reading the weights of a tile costs about as much as multiplying this many rows by them.
    constexpr int64_t kReadCost = 4;
    for (int i = 0; i < g.count(); ++i) {
        if (g.begin(i) == g.end(i)) continue;
        LinearArgs job = group_job(a, i);
        if (!job.weight) continue;
        LinearPlan& p = plans.emplace_back(job, k.width, k.rows);
        p.x = s.workspace().take(DType::f32, {p.rows, p.padded_in}).as<float>();
        if (a.groups.source)
            p.source = a.groups.source.as<int32_t>() + g.begin(i);
        else
            job.x = slice_rows(a.x, g.begin(i), p.rows);
        jobs.push_back(job);
        pack.add(p.blocks, k.rows);
        multiply.add(tiles, kReadCost + p.rows);
    }
    pack.run(pool_of(s), [&](size_t i, int64_t begin, int64_t end) {
        for (; begin < end; ++begin) k.pack(jobs[i], plans[i], begin);
    });
    multiply.run(pool_of(s), [&](size_t i, int64_t begin, int64_t end) {
        k.outputs(jobs[i], plans[i], begin * kLinearOutputs,
                  std::min(end * kLinearOutputs, a.y.shape[1]));
    });
}

}  // namespace exl3::cpu
