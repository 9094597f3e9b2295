#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "cache/paged_cache.h"
#include "cache/state_cache.h"
#include "model/linear.h"
#include "ops/exl3.h"

namespace exl3 {

/// Sees the input of every group of linears that share it. For the quantizer; otherwise absent.
struct LinearTap {
    virtual ~LinearTap() = default;
    /// @param tag  LinearSpec::tag of the linears that will read x
    /// @param x    (tokens, in) f32
    virtual void see(Stream& s, std::string_view tag, ConstView x) = 0;
};

/// All that one forward pass knows.
struct Batch {
    ConstView tokens;     ///< (tokens) i32
    ConstView positions;  ///< (tokens) i32
    SequencesView seq;
    const PagedCache* cache = nullptr;
    ConstView slots;  ///< (sequences) i32: where each one's recurrent state is; read with `states`
    const StateCache* states = nullptr;  ///< may be absent where state_layout() keeps nothing
    /// (tokens, hidden) f32: what the embedding made of the tokens, where needs_embedded() says so.
    ConstView embedded;
    int64_t rope_length = 0;  ///< tokens of the whole request, for length-dependent tables
    LinearTap* tap = nullptr;

    SlotsView state_rows() const { return {seq.q_start, seq.kv_len, slots}; }
};

/// A place in a module that holds a Linear, so that the quantizer can replace it.
struct LinearSlot {
    LinearSlot() = default;
    /// Loads the matrix that `which` names.
    LinearSlot(Stream& s, const Checkpoint& c, const LinearSpec& which)
        : spec(which), linear(load_linear(s, c, which)) {}
    LinearSpec spec;
    std::unique_ptr<Linear> linear;
};
using LinearVisitor = std::function<void(LinearSlot&)>;

/// Runs the matrices of one input in one go, with the stages that `around` names (its x, norm,
/// gated and add members). False, and nothing was done: not all of them are EXL3 matrices.
struct Into {
    const LinearSlot& slot;
    View y;
};
bool run_fused(Stream& s, Exl3FusedArgs around, std::initializer_list<Into> matrices);
/// True if the slot holds an EXL3 matrix.
bool holds_exl3(const LinearSlot& slot);

class Norm;

/// A part of a model. Constant once loaded; scratch comes from the stream's workspace.
struct Module {
    virtual ~Module() = default;
    virtual void forward(Stream& s, const Batch& b,
                         View x) const = 0;  ///< x (tokens, hidden), in place
    /// x += forward(norm(x)), norm absent where null, in fewer passes over memory than one by one.
    /// False, and nothing was done: this module or its weights have no such form.
    virtual bool add_to(Stream&, const Batch&, const Norm*, View) const { return false; }
    virtual void each_linear(const LinearVisitor& visit) = 0;  ///< in quantization order
};

}  // namespace exl3
