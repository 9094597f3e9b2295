#pragma once
#include <cstdint>

#include "ops/encode.h"

namespace exl3::cpu {

// The trellis search knows a transition as a state s = k << (16 - bits) | edge, which is also
// from << bits | symbol: the edge it leads to, the number k of that edge's predecessor, the edge it
// comes from and the symbol it adds.

/// Up to this many bits costs are 16-bit fixed point, which halves memory and doubles the lanes;
/// beyond it errors are too small against the codebook's range for 16 bits, and costs are f32.
inline constexpr int kFixedBits = 4;
constexpr bool is_fixed(int bits) {
    return bits <= kFixedBits;
}

/// Fixed point: values and targets are i16 multiples of range / 32767, the cost of an error d is
/// d^2 / (range^2 / 32768) rounded.
float fixed_range(Codebook codebook, int bits);
/// The codebook's largest value and a margin; a fixed-point target further out counts as this.
float fixed_limit(Codebook codebook);

/// The codebook in the two orders of the search: i16 where is_fixed(bits), else f32.
struct EncodeTables {
    int bits = 0;
    int width = 1;    ///< lanes of a vector
    int vectors = 1;  ///< f32 only: vectors of edges that are searched together
    /// (65536), read from begin to end at every position, hence streamed from cache.
    /// Fixed: [predecessor block][symbol][k][lane], lanes are consecutive predecessors.
    /// f32: [edge block][k][edge in block]: consecutive edges, which share their predecessors.
    void* stream = nullptr;
    /// (65536), by [edge][k]: what the traceback compares at one edge.
    void* trace = nullptr;
};
/// Fills entries [begin, end) of both tables.
void fill_tables(const EncodeTables& tables, Codebook codebook, int begin, int end);

/// Positions before the ring's seam at which the search starts. Paths forget where they began
/// within some constraint lengths; past these the mean error falls by less than 0.4 % at 1 bit,
/// 0.2 % at 2 to 5 and 0.1 % at 6 to 8 (docs/design/quant.md).
int lead_positions(int bits);

/// The search kernel of one instruction set and number of bits.
struct Encoder {
    int width = 1, vectors = 1;  ///< as in EncodeTables
    int together = 1;            ///< tiles that are searched at once
    int64_t scratch_bytes = 0;   ///< per thread
    /// Writes the states of tiles [begin, end).
    void (*encode)(const EncodeTilesArgs& a, const EncodeTables& tables, uint8_t* scratch,
                   int64_t begin, int64_t end) = nullptr;
};

}  // namespace exl3::cpu
