#include "cli/open_model.h"

#include "arch/arch.h"
#include "base/log.h"
#include "cli/progress.h"

namespace exl3::cli {

Runtime open_runtime(const DeviceFlags& flags) {
    Runtime r;
    r.device = open_device(flags.device, flags.options()).value();
    r.stream = r.device->make_stream();
    return r;
}

std::unique_ptr<Model> load_model(Stream& s, const Checkpoint& checkpoint) {
    Progress progress("loading");
    return std::make_unique<Model>(s, checkpoint, describe(checkpoint),
                                   [&](int done, int total) { progress.update(done, total); });
}

void warn_beyond_positions(const ModelSpec& spec, int64_t tokens) {
    if (spec.max_positions > 0 && tokens > spec.max_positions)
        log(LogLevel::warn, "{} tokens are more than the {} the model was made for", tokens,
            spec.max_positions);
}

}  // namespace exl3::cli
