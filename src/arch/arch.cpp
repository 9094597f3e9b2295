#include "arch/arch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arch/skeleton.h"

namespace exl3 {

namespace arch {
#define EXL3_ARCH(name, fn) ModelSpec fn(const ArchInput&);
#include "arch/arch.def"
#undef EXL3_ARCH
}  // namespace arch

namespace {

// The same text stack stands under different prefixes, depending on the writer of the file.
constexpr std::string_view kPrefixes[] = {"model", "model.language_model", "language_model.model",
                                          "backbone", ""};

using Has = std::function<bool(std::string_view)>;
using TensorShape = std::function<std::vector<int64_t>(std::string_view)>;

ArchInput make_input(const HfConfig& config, const Has& has, const TensorShape& shape) {
    ArchInput in{
        config.child("text_config").value_or(config), config, "model", "lm_head", has, shape};
    for (const std::string_view prefix : kPrefixes)
        if (has((Key(std::string(prefix)) / "embed_tokens.weight").str()) ||
            has((Key(std::string(prefix)) / "embeddings.weight").str())) {
            in.prefix = std::string(prefix);
            break;
        }
    for (const std::string_view head : {"lm_head", "language_model.lm_head"})
        if (has((Key(std::string(head)) / "weight").str()) ||
            has((Key(std::string(head)) / "trellis").str()))
            in.head = std::string(head);
    return in;
}

ModelSpec describe(const HfConfig& config, const Has& has, const TensorShape& shape) {
    const std::string name = config.architecture();
    const auto finish = [&](ModelSpec spec, const ArchInput& in) {
        spec.architecture = name;
        check_spec(spec, in);
        return spec;
    };
#define EXL3_ARCH(known, fn)                                 \
    if (name == (known)) {                                   \
        const ArchInput in = make_input(config, has, shape); \
        return finish(arch::fn(in), in);                     \
    }
#include "arch/arch.def"
#undef EXL3_ARCH
    throw Error(Errc::unsupported, {config.file(), {}, {}},
                fmt::format("architecture '{}' is not known; known: {}", name,
                            fmt::join(known_architectures(), ", ")));
}

}  // namespace

std::vector<std::string> known_architectures() {
    return {
#define EXL3_ARCH(name, fn) name,
#include "arch/arch.def"
#undef EXL3_ARCH
    };
}

ModelSpec describe(const HfConfig& config, const std::function<bool(std::string_view)>& has) {
    return describe(config, has, [](std::string_view) { return std::vector<int64_t>(); });
}

ModelSpec describe(const Checkpoint& checkpoint) {
    return describe(
        checkpoint.config(), [&](std::string_view name) { return checkpoint.has(name); },
        [&](std::string_view name) {
            const TensorInfo* info = checkpoint.find(name).info;
            return info ? info->dims : std::vector<int64_t>();
        });
}

}  // namespace exl3
