#include <algorithm>

#include "core/device.h"
#include "ops/moe.h"

namespace exl3::cpu {

// A counting sort: start[g + 1] first counts group g, then is where its next entry goes.
void group_rows(Stream&, const GroupRowsArgs& a) {
    const int64_t rows = a.chosen.shape[0], top_k = a.chosen.shape[1],
                  groups = a.start.shape[0] - 1;
    auto* start = a.start.as<int32_t>();
    std::fill_n(start, groups + 1, 0);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < top_k; ++j) ++start[a.chosen.row<int32_t>(r)[j] + 1];
    for (int64_t g = 0; g < groups; ++g) start[g + 1] += start[g];
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < top_k; ++j) {
            const int32_t entry = start[a.chosen.row<int32_t>(r)[j]]++;
            a.source.as<int32_t>()[entry] = static_cast<int32_t>(r);
            a.slot.row<int32_t>(r)[j] = entry;
        }
    // Every start has moved on to the next group's.
    for (int64_t g = groups; g > 0; --g) start[g] = start[g - 1];
    start[0] = 0;
}

}  // namespace exl3::cpu
