#pragma once
#include "model/module.h"
#include "model/norm.h"

namespace exl3 {

/// The last step of a model: final norm, output matrix, soft cap.
class Head {
public:
    Head(Stream& s, const Checkpoint& c, const ModelSpec& spec);
    /// @param x       (rows, hidden) f32, left as it is
    /// @param logits  (rows, vocab) f32, overwritten
    void forward(Stream& s, ConstView x, View logits, LinearTap* tap = nullptr) const;
    void each_linear(const LinearVisitor& visit) { visit(out_); }

private:
    Norm norm_;
    LinearSlot out_;
    float softcap_, scale_;
};

/// Where the head's weights stand: its own tensors, else the embedding of a tied model.
LinearSpec resolve_head(const Checkpoint& c, const ModelSpec& spec);

}  // namespace exl3
