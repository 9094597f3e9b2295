#include "ops/embed.h"

#include "core/device.h"
#include "core/load.h"

namespace exl3::ref {

void embed(Stream&, const EmbedArgs& a) {
    for (int64_t t = 0; t < a.y.shape[0]; ++t)
        for (int64_t i = 0; i < a.y.shape[1]; ++i)
            a.y.row<float>(t)[i] = load_f32(a.table, a.tokens.as<int32_t>()[t], i) * a.scale;
}

}  // namespace exl3::ref
