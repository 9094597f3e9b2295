#include "model/embedding.h"

#include "ops/ops.h"

namespace exl3 {

Embedding::Embedding(Stream& s, const Checkpoint& c, const ModelSpec& spec)
    : table_(load_tensor(s, c, (spec.embed_key / "weight").str(), {spec.vocab, spec.hidden})),
      scale_(spec.embed_scale) {}

void Embedding::forward(Stream& s, ConstView tokens, View x) const {
    ops::embed(s, {.tokens = tokens, .table = table_.view, .y = x, .scale = scale_});
}

}  // namespace exl3
