#include "core/device.h"
#include "ops/sample.h"

namespace exl3::ref {

void next_token(Stream&, const NextTokenArgs& a) {
    for (int64_t s = 0; s < a.logits.shape[0]; ++s) {
        const float* x = a.logits.row<float>(s);
        int32_t best = 0;
        for (int32_t i = 1; i < a.logits.shape[1]; ++i)
            if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
        int32_t& position = a.positions.as<int32_t>()[s];
        a.log.row<int32_t>(position % a.log.shape[0])[s] = best;
        a.tokens.as<int32_t>()[s] = best;
        ++position;
        ++a.kv_len.as<int32_t>()[s];
    }
}

}  // namespace exl3::ref
