#include <array>

#include "core/device.h"
#include "ops/exl3.h"
#include "trellis/tile.h"

namespace exl3::ref {

void exl3_decode(Stream&, const Exl3DecodeArgs& a) {
    const auto words = static_cast<size_t>(tile_words(a.bits));
    const int64_t tiles_in = a.packed.shape[0], tiles_out = a.packed.shape[1];
    std::array<f16, kTileSize> tile;
    for (int64_t i = 0; i < tiles_in; ++i)
        for (int64_t j = 0; j < tiles_out; ++j) {
            unpack_tile({a.packed.row<uint16_t>(i * tiles_out + j), words}, tile, a.bits,
                        a.codebook);
            for (int e = 0; e < kTileSize; ++e) {
                const int64_t row = i * kTile + e / kTile, col = j * kTile + e % kTile;
                const f16 value = tile[static_cast<size_t>(e)];
                if (a.y.dtype == DType::f16)
                    a.y.row<f16>(row)[col] = value;
                else
                    a.y.row<float>(row)[col] = to_float(value);
            }
        }
}

}  // namespace exl3::ref
