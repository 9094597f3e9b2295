// A tokenizer.json, then after a zero byte a text: an Error, or a tokenizer that keeps its
// promises.
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace {

using namespace exl3;  // NOLINT(google-build-using-namespace)

void check_decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip) {
    const std::string whole = tokenizer.decode(ids, {.skip_special = skip});
    EXL3_CHECK(text::is_valid_utf8(whole));
    StreamDecoder stream(tokenizer, {.skip_special = skip});
    std::string sent;
    for (const int32_t id : ids) {
        sent += stream.push(id);
        EXL3_CHECK(whole.starts_with(sent));
    }
    EXL3_CHECK(sent + stream.flush() == whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::string_view json = input.substr(0, input.find('\0'));
    const std::string_view text =
        json.size() < size ? input.substr(json.size() + 1) : "ab <s>\xC3\xA9\xFF 12x\n";
    try {
        const Tokenizer tokenizer = Tokenizer::from_json(json);
        for (const bool parse : {true, false}) {
            const std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = parse});
            for (const int32_t id : ids) EXL3_CHECK(id >= 0);
            check_decode(tokenizer, ids, parse);
        }
        std::vector<int32_t> some;
        for (const char c : text) some.push_back(static_cast<uint8_t>(c) - 1);
        check_decode(tokenizer, some, false);
    } catch (const Error&) {
        // What a damaged file must end in.
    }
    return 0;
}
