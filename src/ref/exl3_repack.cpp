#include <cstring>

#include "core/device.h"
#include "ops/exl3.h"

namespace exl3::ref {

// The reference reads tiles as the file stores them.
void exl3_repack(Stream&, const Exl3RepackArgs& a) {
    std::memcpy(a.packed.data, a.trellis.data,
                static_cast<size_t>(a.packed.shape.numel()) * sizeof(uint16_t));
}

}  // namespace exl3::ref
