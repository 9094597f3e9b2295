#pragma once
#include <functional>
#include <vector>

#include "cli/command.h"
#include "sample/params.h"

namespace exl3::cli {

/// The sampler's knobs as flags, made from its own table, with --greedy and --seed. Only what the
/// user gave changes the settings that the model asks for.
struct SamplerFlags {
    std::vector<std::function<void(SamplerParams&)>> given;
    bool greedy = false;
    /// `params` with the flags applied. Throws Error{invalid_argument} naming a knob out of range.
    SamplerParams apply(SamplerParams params, int vocab) const;
};
void add_sampler_flags(Command& command, SamplerFlags& flags);

}  // namespace exl3::cli
