// Shows what a checkpoint is and, with --check, whether all of it is sound.
#include <fmt/format.h>

#include "base/log.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/units.h"
#include "quant/inspect.h"

namespace exl3::cli {
namespace {

struct InspectOptions {
    std::string folder;
    bool tensors = false, check = false, json = false;
    DeviceFlags device;
};

std::string format_of(const CheckpointSummary& m) {
    if (m.exl3_matrices == 0) return "plain";
    std::string names;
    for (const std::string& c : m.codebooks) names += (names.empty() ? "" : ", ") + c;
    return fmt::format("EXL3 ({} matrices, codebook {})", m.exl3_matrices, names);
}

void print_sizes(const ModelSpec& spec) {
    print(
        fmt::format("layers         {}\nhidden size    {}\nvocabulary     {}\npositions      {}\n",
                    spec.blocks.size(), spec.hidden, spec.vocab, spec.max_positions));
}

void print_memory(const CheckpointSummary& m, const std::string& device) {
    print(fmt::format("cache          {} a token (f16)\n", bytes_text(m.bytes_per_token)));
    print(fmt::format("memory ({}), one sequence of\n", device));
    for (const MemoryNeed& n : m.memory)
        print(fmt::format("  {:>7} tokens  {:>10}  (weights {}, cache {}, scratch {})\n", n.context,
                          bytes_text(n.total()), bytes_text(n.weights), bytes_text(n.cache),
                          bytes_text(n.scratch)));
}

void print_tensors(const Checkpoint& c) {
    print("tensors\n");
    for (const auto& [name, e] : c.tensors())
        print(fmt::format("  {:<60} {:>7} {:<20} {:>12}  {}\n", name, name_of(e.info->dtype),
                          to_string(e.info->dims), e.info->bytes, file_name(e.file->path())));
}

void print_text(const Checkpoint& c, const CheckpointSummary& m, const InspectOptions& o) {
    print(fmt::format("architecture   {}{}\nformat         {}\n", m.architecture,
                      m.spec ? "" : " (not usable: " + m.why_not + ")", format_of(m)));
    if (m.spec) print_sizes(*m.spec);
    print(fmt::format("weights        {}\n", m.weights));
    if (m.spec)
        print(fmt::format("bits a weight  decoder {:.3f}, head {:.3f}, whole file {:.3f}\n",
                          m.bpw_decoder, m.bpw_head, m.bpw_file));
    else
        print(fmt::format("bits a weight  whole file {:.3f}\n", m.bpw_file));
    print(fmt::format("bytes          {} ({}) in {} tensors\n", m.bytes, bytes_text(m.bytes),
                      c.tensors().size()));
    if (m.spec) print_memory(m, o.device.device == "auto" ? "cpu" : o.device.device);
    if (o.tensors) print_tensors(c);
}

Json memory_json(const CheckpointSummary& m, const std::string& device) {
    Json list = Json::array();
    for (const MemoryNeed& n : m.memory)
        list.push_back({{"device", device},
                        {"context", n.context},
                        {"weights", n.weights},
                        {"cache", n.cache},
                        {"scratch", n.scratch},
                        {"total", n.total()}});
    return list;
}

Json tensors_json(const Checkpoint& c) {
    Json list = Json::array();
    for (const auto& [name, e] : c.tensors())
        list.push_back({{"name", name},
                        {"dtype", std::string(name_of(e.info->dtype))},
                        {"shape", e.info->dims},
                        {"bytes", e.info->bytes},
                        {"file", file_name(e.file->path())}});
    return list;
}

Json document(const Checkpoint& c, const CheckpointSummary& m, const InspectOptions& o) {
    Json d = {{"architecture", m.architecture},
              {"known", m.spec.has_value()},
              {"format", m.exl3_matrices ? "exl3" : "plain"},
              {"codebooks", m.codebooks},
              {"exl3_matrices", m.exl3_matrices},
              {"weights", m.weights},
              {"bytes", m.bytes},
              {"tensor_count", c.tensors().size()},
              {"bpw_file", m.bpw_file}};
    if (m.spec) {
        d["layers"] = m.spec->blocks.size();
        d["hidden_size"] = m.spec->hidden;
        d["vocab_size"] = m.spec->vocab;
        d["max_positions"] = m.spec->max_positions;
        d["bpw_decoder"] = m.bpw_decoder;
        d["bpw_head"] = m.bpw_head;
        d["cache_bytes_per_token"] = m.bytes_per_token;
        d["memory"] = memory_json(m, o.device.device == "auto" ? "cpu" : o.device.device);
    } else {
        d["why_not"] = m.why_not;
    }
    if (o.tensors) d["tensors"] = tensors_json(c);
    return d;
}

void inspect(const InspectOptions& o) {
    const Checkpoint c = Checkpoint::open(o.folder);
    const CheckpointSummary m = summarize(c);
    std::vector<std::string> problems;
    if (o.check) {
        const Runtime runtime = open_runtime(o.device);
        problems = check_checkpoint(*runtime.stream, c);
    }
    if (o.json) {
        Json d = document(c, m, o);
        if (o.check) d["check"] = {{"ok", problems.empty()}, {"problems", problems}};
        print_json(d);
    } else {
        print_text(c, m, o);
        if (o.check && problems.empty()) print("check          no problem found\n");
    }
    if (problems.empty()) return;
    for (const std::string& p : problems) log(LogLevel::warn, "{}", p);
    throw Error(Errc::invalid_file, {},
                problems.size() == 1 ? problems.front()
                                     : fmt::format("{} (and {} more problems)", problems.front(),
                                                   problems.size() - 1));
}

}  // namespace

void add_inspect(Command& command) {
    auto& o = command.options<InspectOptions>();
    command.app.add_option("folder", o.folder, "Folder of the checkpoint")
        ->type_name("DIR")
        ->required();
    command.app.add_flag("--tensors", o.tensors, "List every tensor");
    command.app.add_flag("--check", o.check, "Read everything and report what is wrong");
    add_json_flag(command, o.json);
    add_device_flags(command, o.device);
    command.run([&o] { inspect(o); });
}

}  // namespace exl3::cli
