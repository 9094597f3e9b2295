// Any bytes: an Error, or a document that survives being written and read again.
#include "io/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::vector<uint64_t> keys;
    auto json = parse_json(text, "f.json", &keys, 8);
    if (!json) {
        EXL3_CHECK(json.error().where().offset && *json.error().where().offset <= size + 8);
        return 0;
    }
    if (json->is_object()) {
        EXL3_CHECK(keys.size() == json->size());
        for (const uint64_t k : keys) EXL3_CHECK(text[k - 8] == '"');
    }
    EXL3_CHECK(parse_json(json->dump(), "again").value() == *json);
    return 0;
}
