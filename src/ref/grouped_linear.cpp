#include "core/device.h"
#include "ops/group_jobs.h"

namespace exl3::ref {

void linear(Stream& s, const LinearArgs& a);

void grouped_linear(Stream& s, const GroupedLinearArgs& a) {
    const RowGroupsOnHost g{a.groups};
    for (int i = 0; i < g.count(); ++i) {
        const LinearArgs job = group_job(a, i);
        if (!job.weight) continue;
        for (int64_t r = 0; r < job.y.shape[0]; ++r) {
            LinearArgs row = job;
            row.x = slice_rows(a.x, g.source(g.begin(i) + static_cast<int>(r)), 1);
            row.y = slice_rows(job.y, r, 1);
            linear(s, row);
        }
    }
}

}  // namespace exl3::ref
