#include <cstring>

#include "core/device.h"
#include "ops/recurrence.h"

namespace exl3::ref {

void split_groups(Stream&, const SplitGroupsArgs& a) {
    for (int64_t r = 0; r < a.x.shape[0]; ++r) {
        const float* from = a.x.row<float>(r);
        for (int g = 0; g < a.groups; ++g)
            for (const View& part : a.parts) {
                if (!part) break;
                const int64_t n = part.shape[1] / a.groups;
                std::memcpy(part.row<float>(r) + g * n, from,
                            static_cast<size_t>(n) * sizeof(float));
                from += n;
            }
    }
}

}  // namespace exl3::ref
