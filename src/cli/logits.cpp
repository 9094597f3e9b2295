// Writes the logits of every position: the way to compare this engine with another.
#include <fmt/format.h>

#include <algorithm>

#include "cli/input.h"
#include "cli/open_model.h"
#include "cli/progress.h"
#include "gen/session.h"
#include "io/safetensors.h"

namespace exl3::cli {
namespace {

struct LogitsOptions {
    std::string model, ids, out;
    int chunk = 0;
    KvBits kv_bits;
    DeviceFlags device;
};

// Without --chunk the whole sequence is one pass, cut only where its logits would fill memory.
int pass_length(const ModelSpec& spec, int64_t tokens) {
    constexpr int64_t kLogitBytes = int64_t{1} << 28;
    return static_cast<int>(
        std::clamp<int64_t>(kLogitBytes / (int64_t{4} * spec.vocab), 1, tokens));
}

void write_logits(const LogitsOptions& o) {
    const std::vector<int32_t> ids = read_ids(o.ids);
    if (ids.empty())
        throw Error(Errc::invalid_argument, {input_name(o.ids), {}, {}},
                    "found no token ids, needed at least one");
    const Checkpoint checkpoint = Checkpoint::open(o.model);
    const Runtime runtime = open_runtime(o.device);
    const auto model = load_model(*runtime.stream, checkpoint);
    const ModelSpec& spec = model->spec();
    const auto tokens = static_cast<int64_t>(ids.size());
    for (size_t i = 0; i < ids.size(); ++i)
        if (ids[i] >= spec.vocab)
            throw Error(Errc::invalid_argument, {input_name(o.ids), {}, {}},
                        fmt::format("entry {}: found token id {}, needed 0 to {}", i, ids[i],
                                    spec.vocab - 1));
    warn_beyond_positions(spec, tokens);

    SafetensorsWriter file(o.out,
                           {{.name = "logits", .dtype = DType::f32, .dims = {tokens, spec.vocab}}});
    Progress progress("logits");
    Session session(*model, *runtime.stream,
                    {.max_tokens = tokens,
                     .kv_bits = o.kv_bits,
                     .chunk = o.chunk > 0 ? o.chunk : pass_length(spec, tokens)});
    session.feed_all(ids, [&](int64_t first, ConstView rows) {
        file.write(rows.data, static_cast<size_t>(rows.shape.numel()) * sizeof(float));
        progress.update(first + rows.shape[0], tokens);
    });
    file.commit();
}

}  // namespace

void add_logits(Command& command) {
    auto& o = command.options<LogitsOptions>();
    add_model_flag(command, o.model);
    command.app.add_option("--ids", o.ids, "JSON array of token ids; -: stdin")
        ->type_name("FILE")
        ->required();
    command.app.add_option("-o,--out", o.out, "Tensor 'logits', f32, (tokens, vocab)")
        ->type_name("OUT.safetensors")
        ->required();
    command.app.add_option("--chunk", o.chunk, "Positions that go through the model at a time")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    add_kv_bits_flag(command, o.kv_bits);
    add_device_flags(command, o.device);
    command.run([&o] { write_logits(o); });
}

}  // namespace exl3::cli
