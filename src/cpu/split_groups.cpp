#include <cstring>

#include "cpu/cpu.h"
#include "ops/recurrence.h"

namespace exl3::cpu {

void split_groups(Stream& s, const SplitGroupsArgs& a) {
    const int64_t grain = 16384 / a.x.shape[1] + 1;
    pool_of(s).parallel_for(a.x.shape[0], grain, [&](int64_t r, int64_t end) {
        for (; r < end; ++r) {
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
    });
}

}  // namespace exl3::cpu
