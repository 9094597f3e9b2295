#include "model/head.h"

#include "ops/ops.h"

namespace exl3 {

LinearSpec resolve_head(const Checkpoint& c, const ModelSpec& spec) {
    LinearSpec head = spec.head;
    const bool own = is_exl3(c, head.key) || c.has((head.key / "weight").str());
    // A converted file holds a head of its own even where config.json says the weights are tied.
    if (!own && spec.tied_head) head.fused = spec.embed_key, head.fused_rows = spec.vocab;
    return head;
}

Head::Head(Stream& s, const Checkpoint& c, const ModelSpec& spec)
    : norm_(s, c, spec.final_norm, spec.hidden),
      out_(s, c, resolve_head(c, spec)),
      softcap_(spec.logit_softcap),
      scale_(spec.logit_scale) {}

void Head::forward(Stream& s, ConstView x, View logits, LinearTap* tap) const {
    const auto scope = s.workspace().scope();
    const View y = s.workspace().take(DType::f32, x.shape);
    norm_.forward(s, x, y);
    if (tap) tap->see(s, out_.spec.tag, y);
    out_.linear->forward(s, y, logits);
    if (softcap_ > 0) ops::softcap(s, {.x = logits, .cap = softcap_});
    if (scale_ != 1) ops::add(s, {.x = logits, .y = logits, .scale = scale_ - 1});
}

}  // namespace exl3
