#include "model/spec.h"

// The matrices of the recurrent mixers: what reads the block's input in one bit group, as q, k and
// v of attention, and the output matrix in its own.
namespace exl3 {
namespace {

LinearSpec input(const Key& key, std::string_view name, int hidden, int out) {
    return {.key = key / name,
            .in = hidden,
            .out = out,
            .tag = key / "input",
            .group = key / "input",
            .priority = 2};
}

LinearSpec output(const Key& key, std::string_view name, int in, int hidden) {
    return {.key = key / name,
            .in = in,
            .out = hidden,
            .tag = key / "output",
            .group = key / "output",
            .priority = 2};
}

}  // namespace

std::vector<LinearSpec> linears_of(const DeltaNetSpec& d, int hidden) {
    const LinearSpec out = output(d.key, d.out, d.values(), hidden);
    if (!d.qkvz.empty()) return {input(d.key, d.qkvz, hidden, d.conv_channels() + d.values()), out};
    std::vector<LinearSpec> all;
    const int sizes[] = {d.keys(), d.keys(), d.values()};
    LinearSpec whole = input(d.key, d.qkv, hidden, d.conv_channels());
    for (size_t i = 0; i < d.qkv_parts.size(); ++i) {
        if (d.qkv_split)
            all.push_back(input(d.key, d.qkv_parts[i], hidden, sizes[i]));
        else
            whole.parts.push_back({d.key / d.qkv_parts[i], sizes[i]});
    }
    if (all.empty()) all.push_back(whole);
    all.push_back(input(d.key, d.z, hidden, d.values()));
    all.push_back(out);
    return all;
}

std::vector<LinearSpec> linears_of(const Mamba2Spec& m, int hidden) {
    return {input(m.key, "in_proj", hidden, m.inner() + m.conv_channels() + m.heads),
            output(m.key, "out_proj", m.inner(), hidden)};
}

std::vector<LinearSpec> linears_of(const ShortConvSpec& m, int hidden) {
    return {input(m.key, "in_proj", hidden, 3 * hidden), output(m.key, "out_proj", hidden, hidden)};
}

}  // namespace exl3
