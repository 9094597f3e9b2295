// Any bytes as a file: an Error that names a byte of it, or tensors that tile its data.
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    // The header is complete, and the file as long as the last two bytes say: data need no room.
    const uint64_t extra = size >= 2 ? data[size - 1] + 256u * data[size - 2] : 0;
    for (const uint64_t file_bytes : {uint64_t{size}, size + extra}) {
        auto tensors = parse_safetensors_header(bytes, file_bytes, "f.safetensors");
        if (!tensors) {
            EXL3_CHECK(tensors.error().where().offset);
            continue;
        }
        uint64_t covered = tensors->empty() ? file_bytes : tensors->front().offset;
        for (const TensorInfo& t : *tensors) {
            EXL3_CHECK(t.offset == covered && t.bytes <= file_bytes - covered);
            EXL3_CHECK(t.numel() >= 0 &&
                       static_cast<uint64_t>(t.numel()) * size_of(t.dtype) == t.bytes);
            covered += t.bytes;
        }
        EXL3_CHECK(covered == file_bytes);
    }
    return 0;
}
