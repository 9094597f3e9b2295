#include "text/tokenizer_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "io/mapped_file.h"
#include "text/model_load.h"

namespace exl3 {

using text::AddedToken;
using text::JsonNode;
using text::JsonReader;
using text::JsonValue;
using text::Vocab;

namespace {

constexpr size_t kSmallFile = size_t{64} << 20;

AddedToken load_added(const JsonNode& node) {
    AddedToken token;
    token.content = node.text("content");
    token.single_word = node.flag("single_word", false);
    token.lstrip = node.flag("lstrip", false);
    token.rstrip = node.flag("rstrip", false);
    token.special = node.flag("special", false);
    token.normalized = node.flag("normalized", !token.special);
    return token;
}

int32_t checked_id(int64_t id, const JsonNode& node) {
    if (id < 0 || id > Vocab::kMaxId)
        node.fail(fmt::format("id {} is outside 0 to {}", id, Vocab::kMaxId));
    return static_cast<int32_t>(id);
}

}  // namespace

void TokenizerLoader::add_token(AddedToken token) {
    // The id of the model's vocabulary wins, as in the reference.
    if (const int32_t known = impl_->model->vocab().find(token.content); known >= 0)
        token.id = known;
    impl_->added.add(std::move(token));
}

void TokenizerLoader::read_tokenizer_json(std::string_view json, const std::string& file) {
    JsonReader reader(json, file);
    std::map<std::string, JsonValue, std::less<>> parts;
    std::optional<size_t> model_at;
    reader.object([&](std::string_view key) {
        std::string name(key);
        if (name == "model") {
            reader.peek();
            model_at = reader.offset();
            reader.skip();
        } else if (name == "added_tokens" || name == "normalizer" || name == "pre_tokenizer" ||
                   name == "post_processor" || name == "decoder") {
            parts[name] = reader.value();
        } else {
            reader.skip();  // truncation and padding are the caller's business
        }
    });
    reader.finish();
    if (!model_at) throw Error(Errc::invalid_file, {.file = file}, "key 'model': missing");
    const auto part = [&](std::string_view name) -> std::optional<JsonNode> {
        const auto it = parts.find(name);
        if (it == parts.end() || it->second.is_null()) return std::nullopt;
        return JsonNode(it->second, file, std::string(name));
    };

    Tokenizer::Impl& impl = *impl_;
    if (const auto node = part("normalizer")) impl.normalizer = text::load_normalizer(*node);
    if (const auto node = part("pre_tokenizer"))
        impl.pre_tokenizers = text::load_pre_tokenizers(*node);
    if (const auto node = part("post_processor"))
        impl.post_processor = text::PostProcessor::load(*node);
    if (const auto node = part("decoder")) impl.decoder = text::Decoder::load(*node);

    reader.seek(*model_at, "model");
    impl.model = text::load_model(reader, text::gives_bytes(impl.pre_tokenizers));
    if (impl.model->takes_raw_bytes()) text::keep_bytes(impl.pre_tokenizers);
    if (const auto node = part("added_tokens"))
        for (const JsonNode& item : node->items()) {
            AddedToken token = load_added(item);
            token.id = checked_id(item.integer("id"), item);
            add_token(std::move(token));
        }
}

void TokenizerLoader::name_token(std::string_view name, const JsonNode& value) {
    std::string token;
    if (value.value().is_string())
        token = value.text();
    else if (value.value().is_object())
        token = value.text("content");
    else
        return;
    impl_->named_tokens.emplace(name, std::move(token));  // the first file that has it wins
}

// Ids as keys. Thousands of them, so they are not put in a tree.
void TokenizerLoader::read_added_tokens_decoder(JsonReader& reader) {
    reader.object([&](std::string_view key) {
        int64_t id = -1;
        const auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (ec != std::errc() || end != key.data() + key.size() || id < 0 || id > Vocab::kMaxId)
            reader.fail("needs token ids as keys");
        const JsonValue value = reader.value();
        const JsonNode node(value, reader.file(), fmt::format("added_tokens_decoder.{}", id));
        AddedToken token = load_added(node);
        token.id = static_cast<int32_t>(id);
        if (!impl_->added.by_content(token.content)) add_token(std::move(token));
    });
}

void TokenizerLoader::read_config(std::string_view json, const std::string& file) {
    JsonReader reader(json, file);
    reader.object([&](std::string_view key) {
        const std::string name(key);
        if (name == "added_tokens_decoder" && reader.peek() == JsonValue::Kind::object)
            return read_added_tokens_decoder(reader);
        const JsonValue value = reader.value();
        const JsonNode node(value, file, name);
        if (name == "chat_template" && value.is_string()) {
            impl_->chat_templates.push_back({"default", node.text()});
        } else if (name == "chat_template" && value.is_array()) {
            for (const JsonNode& item : node.items())
                impl_->chat_templates.push_back({item.text("name"), item.text("template")});
        } else if (name == "add_bos_token") {
            add_bos_ = value.truth;
        } else if (name == "add_eos_token") {
            add_eos_ = value.truth;
        } else if (name == "extra_special_tokens" && value.is_object()) {
            for (const auto& [extra, token] : value.members)
                name_token(extra, JsonNode(token, file, name + "." + extra));
        } else if (name.ends_with("_token")) {
            name_token(name, node);
        }
    });
    reader.finish();
}

void TokenizerLoader::read_special_tokens_map(std::string_view json, const std::string& file) {
    JsonReader reader(json, file);
    reader.object([&](std::string_view key) {
        const std::string name(key);
        const JsonValue value = reader.value();
        if (name.ends_with("_token")) name_token(name, JsonNode(value, file, name));
    });
    reader.finish();
}

void TokenizerLoader::read_added_tokens(std::string_view json, const std::string& file) {
    JsonReader reader(json, file);
    reader.object([&](std::string_view key) {
        AddedToken token;
        token.content = key;
        const int64_t id = reader.integer();
        if (id < 0 || id > Vocab::kMaxId)
            reader.fail(fmt::format("id {} is outside 0 to {}", id, Vocab::kMaxId));
        token.id = static_cast<int32_t>(id);
        if (!impl_->added.by_content(token.content)) add_token(std::move(token));
    });
    reader.finish();
}

void TokenizerLoader::read_sentencepiece(std::string_view bytes, const std::string& file) {
    sentencepiece_ = text::SentencePieceModel::parse(bytes, file);
    const text::SentencePieceModel& model = *sentencepiece_;
    impl_->normalizer = text::make_normalizer(model, file);
    impl_->model = text::make_model(model);
    impl_->decoder = text::sentencepiece_decoder(model.add_dummy_prefix);
    using Type = text::SentencePieceModel::Type;
    for (size_t i = 0; i < model.pieces.size(); ++i) {
        const auto& piece = model.pieces[i];
        const bool special = piece.type == Type::control || piece.type == Type::unknown;
        if (special || piece.type == Type::user_defined)
            add_token({.content = piece.text,
                       .id = static_cast<int32_t>(i),
                       .normalized = !special,
                       .special = special});
    }
}

// What the model file says unless tokenizer_config.json has said otherwise.
void TokenizerLoader::finish_sentencepiece() {
    const text::SentencePieceModel& model = *sentencepiece_;
    for (const auto& [name, id] : {std::pair{"bos_token", model.bos_id},
                                   {"eos_token", model.eos_id},
                                   {"unk_token", model.unk_id},
                                   {"pad_token", model.pad_id}})
        if (const auto* piece = model.piece(id)) impl_->named_tokens.emplace(name, piece->text);
    std::vector<int32_t> before, after;
    if (const auto bos = impl_->named_id("bos_token"); bos && add_bos_.value_or(true))
        before.push_back(*bos);
    if (const auto eos = impl_->named_id("eos_token"); eos && add_eos_.value_or(false))
        after.push_back(*eos);
    if (!before.empty() || !after.empty())
        impl_->post_processor = text::PostProcessor(std::move(before), std::move(after));
}

Tokenizer TokenizerLoader::finish() {
    Tokenizer::Impl& impl = *impl_;
    impl.add_bos_token = add_bos_.value_or(false);
    if (sentencepiece_) finish_sentencepiece();
    impl.added.finish([&](std::string content) {
        // SentencePiece seeks user-defined pieces as they are; the dummy prefix is the text's.
        if (impl.normalizer && !sentencepiece_) impl.normalizer->apply(content);
        return content;
    });
    impl.vocab_size = impl.model->vocab().id_bound();
    for (const AddedToken& token : impl.added.all())
        impl.vocab_size = std::max(impl.vocab_size, token.id + 1);
    return Tokenizer(std::move(impl_));
}

Tokenizer Tokenizer::from_json(std::string_view tokenizer, std::string_view config) {
    TokenizerLoader loader;
    loader.read_tokenizer_json(tokenizer, "tokenizer.json");
    if (!config.empty()) loader.read_config(config, "tokenizer_config.json");
    return loader.finish();
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
    TokenizerLoader loader;
    const auto json = folder / "tokenizer.json", model = folder / "tokenizer.model";
    if (std::filesystem::exists(json)) {
        const auto file = MappedFile::open(json).value();
        loader.read_tokenizer_json(file->text(), json.string());
    } else if (std::filesystem::exists(model)) {
        const auto file = MappedFile::open(model).value();
        loader.read_sentencepiece(file->text(), model.string());
    } else {
        throw Error(Errc::io, {.file = folder.string()},
                    "holds neither tokenizer.json nor tokenizer.model");
    }
    const auto optional = [&](const char* name,
                              void (TokenizerLoader::*read)(std::string_view, const std::string&)) {
        const std::filesystem::path path = folder / name;
        if (!std::filesystem::exists(path)) return;
        const std::string text = read_file(path, kSmallFile).value();
        (loader.*read)(text, path.string());
    };
    optional("tokenizer_config.json", &TokenizerLoader::read_config);
    optional("special_tokens_map.json", &TokenizerLoader::read_special_tokens_map);
    optional("added_tokens.json", &TokenizerLoader::read_added_tokens);
    return loader.finish();
}

}  // namespace exl3
