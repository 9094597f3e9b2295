#include "core/device.h"
#include "ops/route_row.h"

namespace exl3::ref {

void route(Stream&, const RouteArgs& a) {
    RouteScratch scratch;
    for (int64_t r = 0; r < a.logits.shape[0]; ++r) route_row(a, r, scratch);
}

}  // namespace exl3::ref
