#include "core/device.h"
#include "ops/moe.h"

namespace exl3::ref {

void group_rows(Stream&, const GroupRowsArgs& a) {
    const int64_t rows = a.chosen.shape[0], top_k = a.chosen.shape[1];
    const auto groups = static_cast<int>(a.start.shape[0] - 1);
    int32_t entry = 0;
    for (int g = 0; g < groups; ++g) {
        a.start.as<int32_t>()[g] = entry;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t j = 0; j < top_k; ++j) {
                if (a.chosen.row<int32_t>(r)[j] != g) continue;
                a.source.as<int32_t>()[entry] = static_cast<int32_t>(r);
                a.slot.row<int32_t>(r)[j] = entry++;
            }
    }
    a.start.as<int32_t>()[groups] = entry;
}

}  // namespace exl3::ref
