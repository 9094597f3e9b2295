#pragma once
#include <memory>
#include <string>

#include "cli/options.h"
#include "io/checkpoint.h"
#include "model/model.h"

namespace exl3::cli {

/// A device and a stream on it. Whatever is loaded there must go first, so declare this before it.
struct Runtime {
    std::unique_ptr<Device> device;
    std::unique_ptr<Stream> stream;
};
/// Throws Error{invalid_argument} or {device} for a device that this build or machine lacks.
Runtime open_runtime(const DeviceFlags& flags);

/// Reads a checkpoint onto the device, with progress on stderr. Throws Error naming what is wrong.
std::unique_ptr<Model> load_model(Stream& s, const Checkpoint& checkpoint);

/// Warns when a request is longer than what the model was made for.
void warn_beyond_positions(const ModelSpec& spec, int64_t tokens);

}  // namespace exl3::cli
