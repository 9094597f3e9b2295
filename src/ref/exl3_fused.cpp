#include "ops/exl3.h"

namespace exl3::ref {

void exl3_fused(Stream& s, const Exl3FusedArgs& a) {
    ops::exl3_fused_in_parts(s, a);
}

}  // namespace exl3::ref
