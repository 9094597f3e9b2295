#include "model/expert_matrices.h"

#include "ops/ops.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

bool same_format(const LinearParts& a, const LinearParts& b) {
    return a.bits == b.bits && a.codebook.kind == b.codebook.kind &&
           a.codebook.multiplier == b.codebook.multiplier && a.weight.dtype == b.weight.dtype;
}

}  // namespace

ExpertMatrices::ExpertMatrices(Stream& s, const Checkpoint& c,
                               const std::vector<LinearSpec>& specs) {
    for (const LinearSpec& spec : specs) slots_.emplace_back(s, c, spec);
    index(s.device());
}

void ExpertMatrices::index(Device& device) {
    formats_.clear();
    std::vector<std::vector<uint64_t>> addresses;
    const auto address = [](const ConstView& v) { return reinterpret_cast<uint64_t>(v.data); };
    for (size_t e = 0; e < slots_.size(); ++e) {
        const LinearParts p = slots_[e].linear->parts();
        size_t f = 0;
        while (f < formats_.size() && !same_format(formats_[f].like, p)) ++f;
        const size_t columns = p.bits > 0 ? 4 : 2;
        if (f == formats_.size()) {
            formats_.push_back({p, {}});
            addresses.emplace_back(columns * slots_.size());
        }
        uint64_t* at = addresses[f].data() + columns * e;
        *at++ = address(p.weight);
        if (p.bits > 0) *at++ = address(p.suh), *at++ = address(p.svh);
        *at = address(p.bias);
    }
    const auto stream = device.make_stream();
    for (size_t f = 0; f < formats_.size(); ++f) {
        const auto experts = static_cast<int64_t>(slots_.size());
        const Shape shape = {experts, static_cast<int64_t>(addresses[f].size()) / experts};
        formats_[f].addresses = device.make_tensor(DType::u64, shape);
        stream->copy(dense(addresses[f].data(), DType::u64, shape), formats_[f].addresses.view);
    }
    stream->synchronize();
}

void ExpertMatrices::forward(Stream& s, const RowGroups& groups, ConstView x, View y) const {
    for (const Format& f : formats_) {
        const Shape& stored = f.like.weight.shape;
        if (f.like.bits == 0)
            ops::grouped_linear(s, {.x = x,
                                    .groups = groups,
                                    .matrices = f.addresses.view,
                                    .dtype = f.like.weight.dtype,
                                    .y = y});
        else
            ops::grouped_exl3_linear(s, {.x = x,
                                         .groups = groups,
                                         .matrices = f.addresses.view,
                                         .y = y,
                                         .k = stored[0] * kTile,
                                         .n = stored[1] * kTile,
                                         .codebook = f.like.codebook,
                                         .bits = f.like.bits});
    }
}

}  // namespace exl3
