#include "core/device.h"
#include "ops/group_jobs.h"

namespace exl3::ref {

void linear(Stream& s, const LinearArgs& a);

void head_linear(Stream& s, const HeadLinearArgs& a) {
    for (int64_t h = 0; h < a.x.shape[1]; ++h) linear(s, head_job(a, h));
}

}  // namespace exl3::ref
