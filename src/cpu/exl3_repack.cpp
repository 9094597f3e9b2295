#include <cstring>

#include "cpu/cpu.h"
#include "cpu/exl3_runs.h"
#include "ops/exl3.h"

namespace exl3::cpu {
namespace {

/// One tile row of a column pair: word i of run `lane` moves from lane * bits + i to i * 16 + lane.
/// The two tiles of the pair follow each other in the file too.
void repack_tiles(const std::byte* from, int bits, uint32_t* to) {
    for (int lane = 0; lane < kRunLanes; ++lane)
        for (int i = 0; i < bits; ++i)
            // A file aligns its tensors to nothing.
            std::memcpy(to + i * kRunLanes + lane, from + (lane * bits + i) * sizeof(uint32_t),
                        sizeof(uint32_t));
}

}  // namespace

void exl3_repack(Stream& s, const Exl3RepackArgs& a) {
    const int64_t tile_rows = a.packed.shape[0], pairs = a.packed.shape[1] / 2;
    const int64_t words = run_words(a.bits);
    const auto* from = a.trellis.as<std::byte>();
    auto* to = a.packed.as<uint32_t>();
    // Cut as the kernels cut, so that pages are first touched by the thread that reads them.
    pool_of(s).parallel_for(pairs, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            for (int64_t t = 0; t < tile_rows; ++t)
                repack_tiles(
                    from + (t * pairs + p) * words * static_cast<int64_t>(sizeof(uint32_t)), a.bits,
                    to + (p * tile_rows + t) * words);
    });
}

}  // namespace exl3::cpu
