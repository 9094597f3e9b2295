#include "core/device.h"
#include "ops/group_jobs.h"

namespace exl3::ref {

void exl3_linear(Stream& s, const Exl3LinearArgs& a);

void grouped_exl3_linear(Stream& s, const GroupedExl3LinearArgs& a) {
    const RowGroupsOnHost g{a.groups};
    for (int i = 0; i < g.count(); ++i) {
        const Exl3LinearArgs job = group_job(a, i);
        if (!job.packed) continue;
        for (int64_t r = 0; r < job.y.shape[0]; ++r) {
            Exl3LinearArgs row = job;
            row.x = slice_rows(a.x, g.source(g.begin(i) + static_cast<int>(r)), 1);
            row.y = slice_rows(job.y, r, 1);
            exl3_linear(s, row);
        }
    }
}

}  // namespace exl3::ref
