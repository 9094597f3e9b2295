// Any bytes as model.safetensors.index.json: an Error, or plain names of files in the same folder.
#include "io/checkpoint.h"
#include "support/mutate_json.h"

EXL3_FUZZ_JSON_MUTATOR

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;
    auto owners =
        parse_checkpoint_index({reinterpret_cast<const char*>(data), size}, "f.index.json");
    if (!owners) {
        EXL3_CHECK(owners.error().where().file == "f.index.json");
        return 0;
    }
    for (const auto& [tensor, owner] : *owners) {
        const std::filesystem::path path(owner);
        EXL3_CHECK(path == path.filename() && path.extension() == ".safetensors");
    }
    return 0;
}
