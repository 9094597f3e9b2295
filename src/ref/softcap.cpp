#include <cmath>

#include "core/device.h"
#include "ops/activation.h"

namespace exl3::ref {

void softcap(Stream&, const SoftcapArgs& a) {
    for (int64_t r = 0; r < a.x.shape[0]; ++r)
        for (int64_t i = 0; i < a.x.shape[1]; ++i) {
            float& x = a.x.row<float>(r)[i];
            x = static_cast<float>(a.cap * std::tanh(static_cast<double>(x) / a.cap));
        }
}

}  // namespace exl3::ref
