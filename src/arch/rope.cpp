#include <fmt/format.h>

#include <cmath>

#include "arch/skeleton.h"

namespace exl3 {
namespace {

// ms(f, a) of YaRN: how much attention sharpens with the stretch.
double yarn_scale(double factor, double a = 1) {
    return factor <= 1 ? 1 : 0.1 * a * std::log(factor) + 1;
}

RopeScaling scaling_named(const HfConfig& c, std::string_view key, const std::string& name) {
    if (name == "default" || name == "mrope") return RopeScaling::none;
    if (name == "linear") return RopeScaling::linear;
    if (name == "dynamic") return RopeScaling::dynamic;
    if (name == "llama3") return RopeScaling::llama3;
    if (name == "yarn") return RopeScaling::yarn;
    if (name == "longrope" || name == "su") return RopeScaling::longrope;
    if (name == "proportional") return RopeScaling::proportional;
    c.fail(key,
           fmt::format("found '{}', needed default, linear, dynamic, llama3, yarn, longrope or "
                       "proportional",
                       name));
}

double number(const HfConfig& c, std::string_view key, double otherwise) {
    const double v = c.get<double>(key, otherwise);
    if (!std::isfinite(v) || v < 0)
        c.fail(key, fmt::format("found {}, needed a number of at least 0", v));
    return v;
}

void read_longrope(const HfConfig& top, const HfConfig& c, RopeSpec& r) {
    r.short_factor = c.list<double>("short_factor");
    r.long_factor = c.list<double>("long_factor");
    const auto half = static_cast<size_t>(r.dims / 2);
    for (const auto& [key, list] :
         {std::pair{"short_factor", &r.short_factor}, {"long_factor", &r.long_factor}}) {
        if (list->size() != half)
            c.fail(key, fmt::format("found {} factors, needed {}", list->size(), half));
        for (const double f : *list)
            if (!(f > 0) || !std::isfinite(f))
                c.fail(key, fmt::format("found {}, needed positive factors", f));
    }
    if (r.original_length <= 0)
        top.fail("original_max_position_embeddings", "is needed by longrope");
    const double stretch =
        c.has("factor") ? number(c, "factor", 1) : r.max_length / r.original_length;
    r.attention_factor = static_cast<float>(c.get<double>(
        "attention_factor",
        stretch <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / std::log(r.original_length))));
}

void read_yarn(const HfConfig& c, RopeSpec& r) {
    if (r.original_length <= 0) r.original_length = r.max_length;
    r.factor = c.has("factor") ? number(c, "factor", 1) : r.max_length / r.original_length;
    r.beta_fast = number(c, "beta_fast", 32);
    r.beta_slow = number(c, "beta_slow", 1);
    r.truncate = c.get<bool>("truncate", true);
    const double mscale = number(c, "mscale", 0), all = number(c, "mscale_all_dim", 0);
    double factor = yarn_scale(r.factor);
    if (mscale != 0 && all != 0) factor = yarn_scale(r.factor, mscale) / yarn_scale(r.factor, all);
    if (r.query_scale_beta != 0) factor = 1;
    r.attention_factor = static_cast<float>(c.get<double>("attention_factor", factor));
}

// The dict that holds the scaling, whichever generation wrote it; empty: none.
std::optional<HfConfig> scaling_dict(const HfConfig& c, std::string_view layer_type) {
    if (auto parameters = c.child("rope_parameters")) {
        if (!layer_type.empty() && parameters->has(layer_type))
            return parameters->child(layer_type);
        return parameters;
    }
    return c.child("rope_scaling");
}

}  // namespace

RopeSpec rope(const ArchInput& in, RopeStyle style, int head_dim, std::string_view layer_type,
              double partial_default) {
    const HfConfig& c = in.config;
    const std::optional<HfConfig> dict = scaling_dict(c, layer_type);
    RopeSpec r{.style = style};
    const auto either = [&](std::string_view key, double otherwise) {
        if (dict && dict->has(key)) return number(*dict, key, otherwise);
        return number(c, key, otherwise);
    };
    r.theta = either("rope_theta", 10000);
    if (r.theta <= 1) c.fail("rope_theta", fmt::format("found {}, needed more than 1", r.theta));
    r.partial = either("partial_rotary_factor", partial_default);
    if (r.partial > 1)
        c.fail("partial_rotary_factor", fmt::format("found {}, needed at most 1", r.partial));
    r.dims = c.get<int>("rotary_dim", static_cast<int>(head_dim * r.partial));
    r.max_length = number(c, "max_position_embeddings", 8192);
    r.original_length = either("original_max_position_embeddings", 0);
    if (!dict) return r;

    const std::string_view key = dict->has("rope_type") ? "rope_type" : "type";
    r.scaling = scaling_named(*dict, key, dict->get<std::string>(key, "default"));
    r.query_scale_beta = static_cast<float>(number(*dict, "llama_4_scaling_beta", 0));
    r.factor = number(*dict, "factor", r.scaling == RopeScaling::llama3 ? 8 : 1);
    if (r.factor <= 0) dict->fail("factor", "found 0, needed a positive number");
    switch (r.scaling) {
        case RopeScaling::none:
        case RopeScaling::linear:
        case RopeScaling::dynamic: break;
        case RopeScaling::llama3:
            if (r.original_length <= 0) r.original_length = 8192;
            r.low_freq_factor = number(*dict, "low_freq_factor", 1);
            r.high_freq_factor = number(*dict, "high_freq_factor", 4);
            if (!(r.high_freq_factor > r.low_freq_factor) || r.low_freq_factor <= 0)
                dict->fail("high_freq_factor", "needs to be above low_freq_factor, both positive");
            break;
        case RopeScaling::yarn: read_yarn(*dict, r); break;
        case RopeScaling::longrope: read_longrope(c, *dict, r); break;
        case RopeScaling::proportional: r.dims = head_dim; break;
    }
    return r;
}

}  // namespace exl3
