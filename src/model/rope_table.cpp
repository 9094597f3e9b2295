#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace exl3 {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

std::vector<double> plain(const RopeSpec& s, double theta) {
    std::vector<double> inv(static_cast<size_t>(s.dims / 2));
    for (size_t i = 0; i < inv.size(); ++i)
        inv[i] = std::pow(theta, -2.0 * static_cast<double>(i) / s.dims);
    return inv;
}

// Long wavelengths are stretched, short ones kept, those between blended (Llama 3.1).
void scale_llama3(const RopeSpec& s, std::vector<double>& inv) {
    const double longest = s.original_length / s.low_freq_factor;
    const double shortest = s.original_length / s.high_freq_factor;
    for (double& f : inv) {
        const double wavelength = kTwoPi / f;
        if (wavelength > longest) {
            f /= s.factor;
        } else if (wavelength >= shortest) {
            const double blend = (s.original_length / wavelength - s.low_freq_factor) /
                                 (s.high_freq_factor - s.low_freq_factor);
            f *= (1 - blend) / s.factor + blend;
        }
    }
}

// YaRN, arXiv 2309.00071: interpolate by a ramp over the number of rotations in the original
// length.
void scale_yarn(const RopeSpec& s, std::vector<double>& inv) {
    const double length = s.original_length > 0 ? s.original_length : s.max_length;
    const auto channel_of = [&](double rotations) {
        return s.dims * std::log(length / (rotations * kTwoPi)) / (2 * std::log(s.theta));
    };
    double low = channel_of(s.beta_fast), high = channel_of(s.beta_slow);
    if (s.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, s.dims - 1.0);
    if (low == high) high += 0.001;
    for (size_t i = 0; i < inv.size(); ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        inv[i] = inv[i] * (1 - ramp) + inv[i] / s.factor * ramp;
    }
}

}  // namespace

bool depends_on_length(const RopeSpec& s) {
    return s.scaling == RopeScaling::longrope || s.scaling == RopeScaling::dynamic;
}

RopeTable rope_table(const RopeSpec& s, int64_t length) {
    std::vector<double> inv = plain(s, s.theta);
    switch (s.scaling) {
        case RopeScaling::none: break;
        case RopeScaling::linear:
            for (double& f : inv) f /= s.factor;
            break;
        case RopeScaling::dynamic: {
            const double l = std::max(static_cast<double>(length), s.max_length);
            const double stretch = s.factor * l / s.max_length - (s.factor - 1);
            inv = plain(s, s.theta * std::pow(stretch, s.dims / (s.dims - 2.0)));
            break;
        }
        case RopeScaling::llama3: scale_llama3(s, inv); break;
        case RopeScaling::yarn: scale_yarn(s, inv); break;
        case RopeScaling::longrope: {
            const auto& f =
                static_cast<double>(length) > s.original_length ? s.long_factor : s.short_factor;
            for (size_t i = 0; i < inv.size(); ++i) inv[i] /= f[i];
            break;
        }
        case RopeScaling::proportional: {
            // All of the head is paired, the leading share rotates, the rest stands still.
            const auto rotating = static_cast<size_t>(s.partial * s.dims / 2);
            for (size_t i = 0; i < inv.size(); ++i) inv[i] = i < rotating ? inv[i] / s.factor : 0;
            break;
        }
    }
    return {{inv.begin(), inv.end()}, s.attention_factor};
}

}  // namespace exl3
