// Token ids to text, whole or as it would be streamed.
#include <fmt/format.h>

#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "text/tokenizer.h"

namespace exl3::cli {
namespace {

struct DetokenizeOptions {
    std::string model, ids, batch;
    bool keep_special = false, stream = false;
};

/// What a stream releases for each id; what is still held at the end goes with the last one.
std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                   const DecodeOptions& options) {
    StreamDecoder decoder(tokenizer, options);
    std::vector<std::string> pieces;
    for (const int32_t id : ids) pieces.push_back(decoder.push(id));
    if (!pieces.empty()) pieces.back() += decoder.flush();
    return pieces;
}

Json decode_batch(const Tokenizer& tokenizer, const DetokenizeOptions& o,
                  const DecodeOptions& options) {
    const Json rows = read_json_input(o.batch);
    if (!rows.is_array())
        throw Error(Errc::invalid_file, {input_name(o.batch), {}, {}},
                    fmt::format("found {}, needed an array of id arrays", rows.type_name()));
    Json all = Json::array();
    for (const Json& row : rows) {
        const auto ids = ids_of(row, input_name(o.batch), fmt::format("entry {}: ", all.size()));
        if (o.stream)
            all.push_back(pieces_of(tokenizer, ids, options));
        else
            all.push_back(tokenizer.decode(ids, options));
    }
    return all;
}

void detokenize(const DetokenizeOptions& o) {
    const Tokenizer tokenizer = Tokenizer::load(o.model);
    const DecodeOptions options{.skip_special = !o.keep_special};
    if (!o.batch.empty()) {
        print_json(decode_batch(tokenizer, o, options));
        return;
    }
    const std::vector<int32_t> ids = read_ids(o.ids);
    if (o.stream)
        for (const std::string& piece : pieces_of(tokenizer, ids, options)) print(piece);
    else
        print(tokenizer.decode(ids, options));
}

}  // namespace

void add_detokenize(Command& command) {
    auto& o = command.options<DetokenizeOptions>();
    add_model_flag(command, o.model);
    auto* source = command.app.add_option_group("source", "What to decode");
    source->add_option("--ids", o.ids, "A JSON array of token ids; -: stdin")->type_name("FILE");
    source->add_option("--batch", o.batch, "A JSON array of id arrays; -: stdin")->type_name("F");
    source->require_option(1);
    command.app.add_flag("--keep-special", o.keep_special, "Write special tokens as text");
    command.app.add_flag("--stream", o.stream,
                         "Decode id by id; with --batch, show what each one releases");
    command.run([&o] { detokenize(o); });
}

}  // namespace exl3::cli
