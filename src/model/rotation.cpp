#include "model/rotation.h"

#include "model/rope_table.h"
#include "ops/ops.h"

namespace exl3 {

Rotation::Rotation(Stream& s, const RopeSpec& spec) : spec_(spec) {
    if (depends_on_length(spec)) return;
    const RopeTable table = rope_table(spec, 0);
    const Shape shape = {spec.dims / 2};
    inv_freq_ = s.device().make_tensor(DType::f32, shape);
    s.copy(dense(table.inv_freq.data(), DType::f32, shape), inv_freq_.view);
    attention_factor_ = table.attention_factor;
}

void Rotation::forward(Stream& s, const Batch& b, View heads, bool query) const {
    const auto scope = s.workspace().scope();
    View inv_freq = inv_freq_.view;
    float factor = attention_factor_;
    if (!inv_freq) {
        const RopeTable table = rope_table(spec_, b.rope_length);
        inv_freq = s.workspace().take(DType::f32, {spec_.dims / 2});
        s.copy(dense(table.inv_freq.data(), DType::f32, {spec_.dims / 2}), inv_freq);
        factor = table.attention_factor;
    }
    ops::rope(s, {.x = heads,
                  .positions = b.positions,
                  .inv_freq = inv_freq,
                  .style = spec_.style,
                  .attention_factor = factor,
                  .query_scale_beta = query ? spec_.query_scale_beta : 0,
                  .query_scale_length = static_cast<float>(spec_.original_length)});
}

}  // namespace exl3
