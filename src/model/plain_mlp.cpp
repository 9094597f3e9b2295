#include "model/plain_mlp.h"

#include <cmath>
#include <optional>

#include "io/convert.h"
#include "ops/ops.h"

namespace exl3 {
namespace {

float softplus(float x) {
    return x > 20 ? x : std::log1p(std::exp(x));
}

// The file holds what softplus makes positive; beta and eps may be left out.
Xielu read_xielu(const Checkpoint& c, const Key& key) {
    const auto number = [&](std::string_view name, std::optional<float> otherwise) {
        const std::string full = key / name;
        const TensorInfo* info = c.find(full).info;
        if (!info && otherwise) return *otherwise;
        if (!info || info->numel() != 1)
            throw Error(
                Errc::invalid_file, info ? c.where(full) : Where{c.folder().string(), full, {}},
                info ? "has shape " + to_string(info->dims) + ", needs one number" : "is missing");
        return read_f32(c, full).front();
    };
    Xielu x;
    x.beta = number("beta", x.beta);
    x.eps = number("eps", x.eps);
    x.positive = softplus(number("alpha_p", {}));
    x.negative = softplus(number("alpha_n", {})) + x.beta;
    return x;
}

}  // namespace

PlainMlp::PlainMlp(Stream& s, const Checkpoint& c, const PlainMlpSpec& spec, int hidden)
    : spec_(spec) {
    const auto linears = linears_of(spec, hidden);
    up_ = LinearSlot(s, c, linears[0]);
    down_ = LinearSlot(s, c, linears[1]);
    if (spec.act == Act::xielu) xielu_ = read_xielu(c, spec.key / "act_fn");
}

void PlainMlp::forward(Stream& s, const Batch& b, View x) const {
    const auto scope = s.workspace().scope();
    const View up = s.workspace().take(DType::f32, {x.shape[0], spec_.inner});
    if (b.tap && spec_.shared_input.empty()) b.tap->see(s, up_.spec.tag, x);
    up_.linear->forward(s, x, up);
    ops::gated_act(s, {.gate = up, .y = up, .act = spec_.act, .xielu = xielu_});
    if (b.tap) b.tap->see(s, down_.spec.tag, up);
    down_.linear->forward(s, up, x);
}

void PlainMlp::each_linear(const LinearVisitor& visit) {
    visit(up_);
    visit(down_);
}

}  // namespace exl3
