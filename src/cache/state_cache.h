#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/device.h"
#include "ops/recurrence.h"

namespace exl3 {

/// What each layer keeps per sequence, however long it is. Layers without a recurrence keep
/// nothing.
struct StateLayout {
    struct Layer {
        int window = 0, channels = 0;               ///< past inputs of a convolution
        int heads = 0, key_dim = 0, value_dim = 0;  ///< matrices of a linear recurrence
        size_t bytes() const;                       ///< of one sequence
    };
    std::vector<Layer> layers;

    /// The same layout with every layer but one empty: for work that goes layer by layer.
    StateLayout only(int layer) const;
    /// Bytes of one sequence over all layers; 0: the model has no recurrence.
    size_t bytes_per_slot() const;
};

/// The recurrent state of `slots` sequences, beside the paged cache. A slot holds the state after
/// the tokens its sequence has read so far, so unlike pages it cannot be cut back: whoever wants to
/// return to a position keeps a copy of it, in another slot or in host memory. A slot needs no
/// clearing before a new sequence: one that starts at its first token starts from zeros.
/// Used by one stream at a time, like the paged cache.
class StateCache {
public:
    /// Throws Error{out_of_memory}.
    StateCache(Device& device, const StateLayout& layout, int slots);

    StateView layer(int i) const;  ///< empty views for a layer that keeps nothing
    int slots() const { return slots_; }
    size_t bytes_per_slot() const { return layout_.bytes_per_slot(); }

    /// The state before the first token.
    void reset(Stream& s, int slot);
    /// Slot `to` becomes a copy of slot `from`: a fork, or a point to return to after a draft.
    void copy(Stream& s, int from, int to);
    /// Writes a slot to host memory. Complete after the stream is synchronized.
    /// @param to  bytes_per_slot() bytes
    void save(Stream& s, int slot, std::span<std::byte> to) const;
    /// Fills a slot from what save() wrote for the same layout, on any device.
    void restore(Stream& s, int slot, std::span<const std::byte> from);

private:
    /// The parts of a slot in the order they are saved, each as (1, floats).
    std::vector<View> parts(int slot) const;
    StateLayout layout_;
    int slots_;
    std::vector<Tensor> window_, memory_;
};

}  // namespace exl3
