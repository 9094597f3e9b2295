#include "import/gguf_rope.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "import/gguf_family.h"

namespace exl3 {
namespace {

std::vector<float> floats(const GgufModel& g, const GgufTensor& t, int64_t needed) {
    if (!t.layout || t.numel() != needed || t.numel() % t.layout->elements != 0)
        throw Error(Errc::invalid_file, g.where(t),
                    fmt::format("found {} numbers of type {}, needed {}", t.numel(), t.type_name(),
                                needed));
    std::vector<float> v(static_cast<size_t>(needed));
    ggml_to_f32(*t.layout, t.data, needed, v.data());
    return v;
}

struct Llama3Scaling {
    double factor = 8, low = 1, high = 4, original = 8192;

    /// By how much frequency i of `half` is lowered (Llama 3.1's rule).
    double at(int i, int half, double theta) const {
        const double wavelength =
            2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / half);
        if (wavelength < original / high) return 1;
        if (wavelength > original / low) return factor;
        const double smooth = (original / wavelength - low) / (high - low);
        return 1 / ((1 - smooth) / factor + smooth);
    }
};

Json llama3_scaling(const GgufModel& g, const GgufTensor& t, int half, double theta) {
    const std::vector<float> factors = floats(g, t, half);
    // The lowest frequency is lowered by the whole factor.
    Llama3Scaling s{.factor = std::round(static_cast<double>(factors.back()) * 1024) / 1024};
    // Models were stretched from a length that is a power of two.
    for (double original = 32; original <= 1 << 20; original *= 2) {
        s.original = original;
        bool same = true;
        for (int i = 0; i < half; ++i) {
            const double f = factors[static_cast<size_t>(i)];
            same = same && std::fabs(s.at(i, half, theta) - f) <= 1e-3 * std::fabs(f);
        }
        if (same)
            return {{"rope_type", "llama3"},
                    {"factor", s.factor},
                    {"low_freq_factor", s.low},
                    {"high_freq_factor", s.high},
                    {"original_max_position_embeddings", static_cast<int>(original)}};
    }
    throw Error(Errc::unsupported, g.where(t),
                "its factors are not those of Llama 3's scaling from any length");
}

}  // namespace

void add_rope(const GgufModel& g, Json& c) {
    const auto key = [&](std::string_view name) { return arch_key(g, name); };
    const double theta = g.get<double>(key("rope.freq_base"), 10000.0);
    if (theta <= 1)
        g.fail(key("rope.freq_base"), fmt::format("found {}, needed more than 1", theta));
    c["rope_theta"] = theta;
    const int head_dim = c.at("head_dim").get<int>();
    const int dims = g.get<int>(key("rope.dimension_count"), head_dim);
    if (dims <= 0 || dims > head_dim || dims % 2 != 0)
        g.fail(key("rope.dimension_count"),
               fmt::format("found {}, needed an even number up to {}", dims, head_dim));
    if (dims != head_dim) c["partial_rotary_factor"] = static_cast<double>(dims) / head_dim;
    if (const GgufTensor* freqs = g.find("rope_freqs.weight")) {
        c["rope_scaling"] = llama3_scaling(g, *freqs, dims / 2, theta);
        return;
    }
    const auto type = g.get<std::string>(key("rope.scaling.type"), "none");
    const double factor =
        g.get<double>(key("rope.scaling.factor"), g.get<double>(key("rope.scale_linear"), 1.0));
    if (type == "none" || type == "longrope") {
        if (type == "none" && g.has(key("rope.scale_linear")) && factor != 1)
            c["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
    } else if (type == "linear") {
        if (factor != 1) c["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
    } else if (type == "yarn") {
        Json s = {{"rope_type", "yarn"},
                  {"factor", factor},
                  {"original_max_position_embeddings",
                   g.get<int>(key("rope.scaling.original_context_length"))},
                  {"beta_fast", g.get<double>(key("rope.scaling.yarn_beta_fast"), 32.0)},
                  {"beta_slow", g.get<double>(key("rope.scaling.yarn_beta_slow"), 1.0)}};
        // In the file it multiplies YaRN's own factor; in the config it stands for the product.
        const double more = g.get<double>(key("rope.scaling.attn_factor"),
                                          g.get<double>(key("rope.scaling.yarn_attn_factor"), 1.0));
        if (more != 1) s["attention_factor"] = more * (0.1 * std::log(factor) + 1);
        c["rope_scaling"] = s;
    } else {
        throw Error(Errc::unsupported, {g.path(), {}, {}},
                    fmt::format("key '{}': found '{}', needed none, linear, yarn or longrope",
                                key("rope.scaling.type"), type));
    }
}

void add_longrope(const GgufModel& g, Json& c) {
    const GgufTensor *shorts = g.find("rope_factors_short.weight"),
                     *longs = g.find("rope_factors_long.weight");
    if (!shorts && !longs) return;
    if (!shorts || !longs)
        throw Error(Errc::invalid_file, g.where(shorts ? *shorts : *longs),
                    "needed both rope_factors_short.weight and rope_factors_long.weight");
    const int dims = g.get<int>(arch_key(g, "rope.dimension_count"), c.at("head_dim").get<int>());
    Json s = {{"rope_type", "longrope"}, {"type", "longrope"}};
    for (const auto& [name, tensor] : {std::pair{"short_factor", shorts}, {"long_factor", longs}}) {
        s[name] = Json::array();
        for (const float f : floats(g, *tensor, dims / 2))
            s[name].push_back(std::round(static_cast<double>(f) * 1e6) / 1e6);
    }
    c["rope_scaling"] = s;
    c["original_max_position_embeddings"] =
        g.get<int>(arch_key(g, "rope.scaling.original_context_length"));
}

}  // namespace exl3
