// Any bytes as a tokenizer.model: an Error, or a tokenizer whose ids decode to text.
#include "base/error.h"
#include "text/sentencepiece.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;  // NOLINT(google-build-using-namespace)
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    try {
        const auto model = text::SentencePieceModel::parse(bytes, "f.model");
        const auto normalizer = text::make_normalizer(model, "f.model");
        const auto tokens = text::make_model(model);
        for (std::string text : {"ab  ba \xC3\xA9", " ", "\xE2\x96\x81"}) {
            normalizer->apply(text);
            EXL3_CHECK(text::is_valid_utf8(text));
            std::vector<int32_t> ids;
            tokens->encode(text, ids);
            for (const int32_t id : ids)
                EXL3_CHECK(id >= 0 && static_cast<size_t>(id) < model.pieces.size());
        }
    } catch (const Error&) {
        // What a damaged file must end in.
    }
    return 0;
}
