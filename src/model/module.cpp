#include "model/module.h"

#include "ops/ops.h"

namespace exl3 {

bool holds_exl3(const LinearSlot& slot) {
    return slot.linear->parts().bits > 0;
}

bool run_fused(Stream& s, Exl3FusedArgs around, std::initializer_list<Into> matrices) {
    EXL3_CHECK(matrices.size() <= around.matrices.size());
    size_t n = 0;
    for (const Into& m : matrices) {
        const LinearParts p = m.slot.linear->parts();
        if (p.bits == 0) return false;
        around.matrices[n++] = {.packed = p.weight,
                                .suh = p.suh,
                                .svh = p.svh,
                                .bias = p.bias,
                                .y = m.y,
                                .codebook = p.codebook,
                                .bits = p.bits};
    }
    ops::exl3_fused(s, around);
    return true;
}

}  // namespace exl3
