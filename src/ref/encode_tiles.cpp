#include <algorithm>
#include <limits>
#include <vector>

#include "core/device.h"
#include "ops/encode.h"
#include "trellis/tile.h"

namespace exl3::ref {
namespace {

// An edge is the low 16 - bits bits of the state just emitted. State s = k << (16 - bits) | edge
// comes from edge s >> bits, so every edge has 2^bits predecessors, one per k.
class Search {
public:
    Search(Codebook codebook, int bits) : bits_(bits), edges_(65536 >> bits) {
        for (const f16 v : codebook_table(codebook)) values_.push_back(to_float(v));
        back_.resize(static_cast<size_t>(kTileSize) * static_cast<size_t>(edges_));
    }

    /// Steps over all 256 positions from `start`, from any edge if `from` is -1, else from that
    /// one.
    /// @return the cost of each edge after the last step; back(i, edge) then tells its predecessor
    const std::vector<float>& forward(const float* target, int start, int from) {
        constexpr float kNever = std::numeric_limits<float>::infinity();
        cost_.assign(static_cast<size_t>(edges_), from < 0 ? 0.0f : kNever);
        if (from >= 0) cost_[static_cast<size_t>(from)] = 0;
        std::vector<float> next(cost_.size());
        for (int i = 0; i < kTileSize; ++i) {
            const float w = target[(start + i) % kTileSize];
            for (int e = 0; e < edges_; ++e) {
                float best = kNever;
                int chosen = e >> bits_;
                for (int k = 0; k < 1 << bits_; ++k) {
                    const int s = k * edges_ + e;
                    const float d = values_[static_cast<size_t>(s)] - w;
                    const float c = cost_[static_cast<size_t>(s >> bits_)] + d * d;
                    if (c < best) {
                        best = c;
                        chosen = s >> bits_;
                    }
                }
                next[static_cast<size_t>(e)] = best;
                back(i, e) = static_cast<uint16_t>(chosen);
            }
            cost_.swap(next);
        }
        return cost_;
    }
    uint16_t& back(int step, int edge) {
        return back_[static_cast<size_t>(step) * static_cast<size_t>(edges_) +
                     static_cast<size_t>(edge)];
    }
    float value(int state) const { return values_[static_cast<size_t>(state)]; }

private:
    int bits_, edges_;
    std::vector<float> values_, cost_;
    std::vector<uint16_t> back_;
};

}  // namespace

void encode_tiles(Stream&, const EncodeTilesArgs& a) {
    Search search(a.codebook, a.bits);
    std::vector<float> target(kTileSize);
    for (int64_t tile = 0; tile < a.target.shape[0]; ++tile) {
        for (int p = 0; p < kTileSize; ++p)
            target[static_cast<size_t>(p)] = clamp_target(a.target.row<float>(tile)[p]);

        // A free pass from the middle finds the edge that crosses from position 255 to 0 ...
        const std::vector<float>& cost = search.forward(target.data(), kTileSize / 2, -1);
        int edge = static_cast<int>(std::min_element(cost.begin(), cost.end()) - cost.begin());
        for (int i = kTileSize - 1; i >= kTileSize / 2; --i) edge = search.back(i, edge);

        // ... and the second pass starts and ends with it.
        search.forward(target.data(), 0, edge);
        for (int p = kTileSize - 1; p >= 0; --p) {
            const int from = search.back(p, edge);
            const int state = (from << a.bits | (edge & ((1 << a.bits) - 1))) & 0xffff;
            a.states.row<uint16_t>(tile)[p] = static_cast<uint16_t>(state);
            if (a.values) a.values.row<float>(tile)[p] = search.value(state);
            edge = from;
        }
    }
}

}  // namespace exl3::ref
