// Any bytes as the config.json of a model: a ModelSpec or an Error, in bounded memory.
#include "arch/arch.h"
#include "support/mutate_json.h"

EXL3_FUZZ_JSON_MUTATOR

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;
    auto config = HfConfig::parse({reinterpret_cast<const char*>(data), size}, "f.json");
    if (!config) return 0;
    // Whether the size is odd says if the embedding is where most models have it.
    const std::string_view embedding =
        size % 2 ? "model.embed_tokens.weight" : "model.language_model.embed_tokens.weight";
    try {
        const ModelSpec spec =
            describe(*config, [&](std::string_view name) { return name == embedding; });
        EXL3_CHECK(!spec.blocks.empty());
    } catch (const Error& e) {
        EXL3_CHECK(e.where().file == "f.json");
    }
    return 0;
}
