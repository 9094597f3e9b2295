// Text to token ids.
#include <fmt/format.h>

#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "text/tokenizer.h"

namespace exl3::cli {
namespace {

struct TokenizeOptions {
    std::string model, text, text_file, batch;
    bool no_special = false, no_parse_special = false;
    CLI::Option* given_text = nullptr;
};

Json encode_batch(const Tokenizer& tokenizer, const std::string& path,
                  const EncodeOptions& options) {
    const Json texts = read_json_input(path);
    const auto refuse = [&](const std::string& what) {
        throw Error(Errc::invalid_file, {input_name(path), {}, {}}, what);
    };
    if (!texts.is_array())
        refuse(fmt::format("found {}, needed an array of strings", texts.type_name()));
    Json all = Json::array();
    for (const Json& text : texts) {
        if (!text.is_string())
            refuse(
                fmt::format("entry {}: found {}, needed a string", all.size(), text.type_name()));
        all.push_back(tokenizer.encode(text.get_ref<const std::string&>(), options));
    }
    return all;
}

void tokenize(const TokenizeOptions& o) {
    const Tokenizer tokenizer = Tokenizer::load(o.model);
    const EncodeOptions options{.add_special = !o.no_special, .parse_special = !o.no_parse_special};
    if (!o.batch.empty())
        print_json(encode_batch(tokenizer, o.batch, options));
    else
        print_json(
            tokenizer.encode(o.given_text->count() ? o.text : read_input(o.text_file), options));
}

}  // namespace

void add_tokenize(Command& command) {
    auto& o = command.options<TokenizeOptions>();
    add_model_flag(command, o.model);
    auto* source = command.app.add_option_group("source", "What to encode");
    o.given_text = source->add_option("--text", o.text, "The text itself")->type_name("T");
    source->add_option("--text-file", o.text_file, "A file with the text; -: stdin")
        ->type_name("F");
    source->add_option("--batch", o.batch, "A JSON array of texts; -: stdin")->type_name("F");
    source->require_option(1);
    command.app.add_flag("--no-special", o.no_special, "Add no BOS, EOS and the like");
    command.app.add_flag("--no-parse-special", o.no_parse_special,
                         "Special tokens written in the text are plain text");
    command.run([&o] { tokenize(o); });
}

}  // namespace exl3::cli
