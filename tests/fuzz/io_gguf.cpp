// Any bytes as a GGUF file: an Error that names a byte of it, or tensors inside the file, which
// decode.
#include "io/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    auto header = parse_gguf_header(bytes, "f.gguf");
    if (!header) {
        EXL3_CHECK(header.error().where().offset);
        return 0;
    }
    for (const auto& [key, value] : header->metadata)
        EXL3_CHECK(!key.empty() && value.offset <= size);
    uint64_t covered = header->data_start;
    for (const GgufTensor& t : header->tensors) {
        EXL3_CHECK(t.offset >= covered && t.offset <= size && t.bytes <= size - t.offset);
        covered = t.offset + t.bytes;
        if (!t.layout) continue;
        std::vector<float> values(static_cast<size_t>(t.numel()));
        ggml_to_f32(*t.layout, data + t.offset, t.numel(), values.data());
    }
    return 0;
}
