#include "cpu/cpu.h"
#include "ops/route_row.h"

namespace exl3::cpu {

void route(Stream& s, const RouteArgs& a) {
    pool_of(s).parallel_for(a.logits.shape[0], 8, [&](int64_t r, int64_t end) {
        RouteScratch scratch;
        for (; r < end; ++r) route_row(a, r, scratch);
    });
}

}  // namespace exl3::cpu
