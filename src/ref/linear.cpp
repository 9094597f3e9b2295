#include "ops/linear.h"
#include "core/device.h"
#include "core/load.h"

namespace exl3::ref {

void linear(Stream&, const LinearArgs& a) {
    for (int64_t r = 0; r < a.x.shape[0]; ++r)
        for (int64_t j = 0; j < a.y.shape[1]; ++j) {
            double sum = a.bias ? load_f32(a.bias, 0, j) : 0;
            for (int64_t i = 0; i < a.x.shape[1]; ++i)
                sum += static_cast<double>(a.x.row<float>(r)[i]) * load_f32(a.weight, j, i);
            a.y.row<float>(r)[j] = static_cast<float>(sum);
        }
}

}  // namespace exl3::ref
