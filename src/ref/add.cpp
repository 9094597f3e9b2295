#include "core/device.h"
#include "ops/activation.h"

namespace exl3::ref {

void add(Stream&, const AddArgs& a) {
    for (int64_t r = 0; r < a.y.shape[0]; ++r)
        for (int64_t i = 0; i < a.y.shape[1]; ++i)
            a.y.row<float>(r)[i] += a.x.row<float>(r)[i] * a.scale;
}

}  // namespace exl3::ref
