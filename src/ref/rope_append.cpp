#include "ops/rope_append.h"

namespace exl3::ref {

void rope_append(Stream& s, const RopeAppendArgs& a) {
    ops::rope_append_in_parts(s, a);
}

}  // namespace exl3::ref
