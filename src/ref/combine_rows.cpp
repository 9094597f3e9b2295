#include "core/device.h"
#include "ops/moe.h"

namespace exl3::ref {

void combine_rows(Stream&, const CombineRowsArgs& a) {
    for (int64_t r = 0; r < a.y.shape[0]; ++r)
        for (int64_t i = 0; i < a.y.shape[1]; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < a.slot.shape[1]; ++j)
                sum += static_cast<double>(a.weight.row<float>(r)[j]) *
                       a.x.row<float>(a.slot.row<int32_t>(r)[j])[i];
            a.y.row<float>(r)[i] = static_cast<float>(sum);
        }
}

}  // namespace exl3::ref
