#include "import/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "base/log.h"
#include "import/pre_tokenizers.h"

namespace exl3 {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

/// The kinds of tokens under the numbers that tokenizer.ggml.token_type gives them.
enum class TokenType {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
};

struct NamedId {
    const char* key;   ///< in the GGUF file
    const char* name;  ///< in tokenizer_config.json
};
constexpr NamedId kNamed[] = {{"tokenizer.ggml.bos_token_id", "bos_token"},
                              {"tokenizer.ggml.eos_token_id", "eos_token"},
                              {"tokenizer.ggml.unknown_token_id", "unk_token"},
                              {"tokenizer.ggml.padding_token_id", "pad_token"}};

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string out;
    for (size_t at = 0;;) {
        const size_t next = text.find(from, at);
        out += text.substr(at, next - at);
        if (next == std::string_view::npos) return out;
        out += to;
        at = next + from.size();
    }
}

class Rebuilder {
public:
    explicit Rebuilder(const GgufModel& gguf) : gguf_(gguf) {}

    GgufTokenizer run() {
        kind_ = gguf_.get<std::string>("tokenizer.ggml.model");
        if (kind_ != "gpt2" && kind_ != "llama" && kind_ != "gemma4")
            throw Error(Errc::unsupported, {gguf_.path(), {}, {}},
                        fmt::format("key 'tokenizer.ggml.model': found '{}', needed gpt2, llama or "
                                    "gemma4",
                                    kind_));
        read_tokens();
        GgufTokenizer out;
        out.tokenizer_json = gguf_.has("tokenizer.huggingface.json")
                                 ? gguf_.get<std::string>("tokenizer.huggingface.json")
                             : byte_level() ? byte_level_json()
                                            : sentencepiece_json();
        out.config = config();
        return out;
    }

private:
    bool byte_level() const { return kind_ == "gpt2"; }

    void read_tokens() {
        constexpr const char* kTokens = "tokenizer.ggml.tokens";
        for (const std::string_view token : gguf_.strings(kTokens)) tokens_.emplace_back(token);
        if (tokens_.empty()) gguf_.fail(kTokens, "needed a list of tokens");
        if (tokens_.size() > size_t{1} << 24) gguf_.fail(kTokens, "more tokens than any model has");
        constexpr const char* kTypes = "tokenizer.ggml.token_type";
        for (const int64_t t : gguf_.integers(kTypes)) {
            if (t < 1 || t > 6) gguf_.fail(kTypes, fmt::format("found {}, needed 1 to 6", t));
            types_.push_back(static_cast<TokenType>(t));
        }
        if (types_.empty()) types_.assign(tokens_.size(), TokenType::normal);
        same_length(kTypes, types_.size());
        for (const NamedId& n : kNamed) mark_special(n.key);
        for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
            mark_special(key);
        for (size_t i = 0; i < tokens_.size(); ++i) {
            // Writers turn the marks of user-defined pieces into the spaces they stand for.
            if (!byte_level() && types_[i] == TokenType::user_defined)
                tokens_[i] = replaced(tokens_[i], " ", kSpaceMark);
            if (in_vocab(i)) ids_.emplace(tokens_[i], static_cast<int32_t>(i));
        }
    }

    void same_length(const char* key, size_t n) {
        if (n != tokens_.size())
            gguf_.fail(key, fmt::format("found {} entries, needed one for each of {} tokens", n,
                                        tokens_.size()));
    }

    std::optional<size_t> id_at(const char* key) const {
        if (!gguf_.has(key)) return std::nullopt;
        const auto id = gguf_.get<int64_t>(key);
        // Writers say "none" with -1, as signed or unsigned 32 bits.
        if (id == -1 || id == 0xffffffff) return std::nullopt;
        if (id < 0 || static_cast<size_t>(id) >= tokens_.size())
            gguf_.fail(key,
                       fmt::format("found {}, needed an id of the {} tokens", id, tokens_.size()));
        return static_cast<size_t>(id);
    }

    // Older writers call every token normal; those that end a turn must not come out as text.
    void mark_special(const char* key) {
        const auto id = id_at(key);
        if (id && types_[*id] == TokenType::normal && tokens_[*id].starts_with('<') &&
            tokens_[*id].ends_with('>'))
            types_[*id] = TokenType::control;
    }

    // Tokens that only fill up the embedding are left out.
    bool in_vocab(size_t i) const { return types_[i] != TokenType::unused; }

    std::string quoted(const std::string& text, size_t id) const {
        try {
            return Json(text).dump();
        } catch (const Json::exception&) {
            gguf_.fail("tokenizer.ggml.tokens", fmt::format("token {} is not UTF-8", id));
        }
    }

    // Written as text: a tree of hundreds of thousands of nodes would take longer than the rest.
    std::string vocab_json() const {
        std::string out = "{";
        for (size_t i = 0; i < tokens_.size(); ++i) {
            if (!in_vocab(i)) continue;
            if (ids_.at(tokens_[i]) != static_cast<int32_t>(i)) {
                log(LogLevel::warn, "{}: token {} is written like token {} and is left out",
                    gguf_.path(), i, ids_.at(tokens_[i]));
                continue;
            }
            out += fmt::format("{}{}:{}", out.size() > 1 ? "," : "", quoted(tokens_[i], i), i);
        }
        return out + "}";
    }

    struct Merge {
        std::string_view left, right;
    };

    std::string merges_json(const std::vector<Merge>& merges) const {
        std::string out = "[";
        for (const Merge& m : merges)
            out += fmt::format("{}[{},{}]", out.size() > 1 ? "," : "",
                               Json(std::string(m.left)).dump(), Json(std::string(m.right)).dump());
        return out + "]";
    }

    std::vector<Merge> listed_merges() const {
        constexpr const char* kMerges = "tokenizer.ggml.merges";
        std::vector<Merge> merges;
        for (const std::string_view line : gguf_.strings(kMerges)) {
            // The first part may itself begin with a space.
            const size_t space = line.find(' ', 1);
            if (space == std::string_view::npos)
                gguf_.fail(kMerges, fmt::format("entry {} is no pair", merges.size()));
            const Merge m{line.substr(0, space), line.substr(space + 1)};
            for (const std::string_view part : {m.left, m.right})
                if (!ids_.contains(std::string(part)))
                    gguf_.fail(kMerges, fmt::format("entry {} joins '{}', which is no token",
                                                    merges.size(), part));
            merges.push_back(m);
        }
        if (merges.empty()) gguf_.fail(kMerges, "needed a list of merges");
        return merges;
    }

    // SentencePiece joins whichever neighbours make the piece with the best score. As a list of
    // pairs: every way to cut a piece into two others, best piece first; ties in the order of the
    // Hugging Face converter, longer left part first.
    std::vector<Merge> merges_from_scores() const {
        constexpr const char* kScores = "tokenizer.ggml.scores";
        std::vector<double> scores = gguf_.numbers(kScores);
        if (scores.empty()) gguf_.fail(kScores, "needed a list of scores");
        if (scores.size() != tokens_.size())
            gguf_.fail(kScores, fmt::format("found {} entries, needed one for each of {} tokens",
                                            scores.size(), tokens_.size()));
        struct Scored {
            Merge merge;
            double score;
            std::array<int32_t, 2> lengths;
        };
        std::vector<Scored> all;
        for (size_t i = 0; i < tokens_.size(); ++i) {
            if (!in_vocab(i)) continue;
            const std::string_view piece = tokens_[i];
            const double score = types_[i] == TokenType::normal ? scores[i] : 0;
            const auto length = static_cast<int32_t>(characters(piece));
            int32_t left_length = 0;
            for (size_t cut = 1; cut < piece.size(); ++cut) {
                if ((static_cast<uint8_t>(piece[cut]) & 0xc0) == 0x80) continue;
                ++left_length;
                const auto left = ids_.find(std::string(piece.substr(0, cut)));
                if (left == ids_.end()) continue;
                const auto right = ids_.find(std::string(piece.substr(cut)));
                if (right == ids_.end()) continue;
                all.push_back(
                    {{left->first, right->first}, score, {left_length, length - left_length}});
            }
        }
        std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
            if (a.score != b.score) return a.score > b.score;
            return a.lengths > b.lengths;
        });
        std::vector<Merge> merges;
        merges.reserve(all.size());
        for (const Scored& s : all) merges.push_back(s.merge);
        return merges;
    }

    static size_t characters(std::string_view text) {
        return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
            return (static_cast<uint8_t>(c) & 0xc0) != 0x80;
        }));
    }

    Json added_tokens() const {
        Json added = Json::array();
        for (size_t i = 0; i < tokens_.size(); ++i) {
            const bool special = types_[i] == TokenType::control || types_[i] == TokenType::unknown;
            if (!special && types_[i] != TokenType::user_defined) continue;
            if (tokens_[i].empty()) continue;
            quoted(tokens_[i], i);  // for its check
            added.push_back({{"id", i},
                             {"content", tokens_[i]},
                             {"single_word", false},
                             {"lstrip", false},
                             {"rstrip", false},
                             {"normalized", false},
                             {"special", special}});
        }
        return added;
    }

    bool adds(const char* key, const char* id_key, bool otherwise) const {
        return gguf_.get<bool>(key, otherwise) && id_at(id_key).has_value();
    }
    bool adds_bos() const {
        return adds("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", bos_default_);
    }
    bool adds_eos() const {
        return adds("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false);
    }

    // BOS and EOS around the text; null if there are none.
    Json template_processing() const {
        Json single = Json::array(), pair = Json::array(), specials = Json::object();
        const auto put = [&](const char* key, int sequence) {
            const std::string& token = tokens_[*id_at(key)];
            const Json item = {{"SpecialToken", {{"id", token}, {"type_id", sequence}}}};
            if (sequence == 0) single.push_back(item);
            pair.push_back(item);
            specials[token] = {
                {"id", token}, {"ids", {*id_at(key)}}, {"tokens", Json::array({token})}};
        };
        for (const int sequence : {0, 1}) {
            if (adds_bos()) put("tokenizer.ggml.bos_token_id", sequence);
            const Json text = {
                {"Sequence", {{"id", sequence == 0 ? "A" : "B"}, {"type_id", sequence}}}};
            if (sequence == 0) single.push_back(text);
            pair.push_back(text);
            if (adds_eos()) put("tokenizer.ggml.eos_token_id", sequence);
        }
        if (specials.empty()) return nullptr;
        return {{"type", "TemplateProcessing"},
                {"single", single},
                {"pair", pair},
                {"special_tokens", specials}};
    }

    std::string assemble(const Json& stages, const Json& model, const std::string& vocab,
                         const std::string& merges) const {
        std::string out = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null";
        out += ",\n\"added_tokens\":" + added_tokens().dump();
        for (const auto& [name, stage] : stages.items())
            out += fmt::format(",\n\"{}\":{}", name, stage.dump());
        std::string head = model.dump();
        head.pop_back();  // the object goes on with the two long members
        return out + ",\n\"model\":" + head + ",\n\"vocab\":" + vocab + ",\n\"merges\":" + merges +
               "}}\n";
    }

    PreTokenizer named_pre_tokenizer() const {
        constexpr const char* kPre = "tokenizer.ggml.pre";
        std::string name = gguf_.get<std::string>(kPre, "default");
        if (name == "default") {
            name = ids_.contains("<|begin_of_text|>") ? "llama-bpe" : "gpt-2";
            log(LogLevel::warn, "{}: key '{}' is missing; taking '{}'", gguf_.path(), kPre, name);
        }
        auto pre = pre_tokenizer_named(name);
        if (!pre)
            throw Error(Errc::unsupported, {gguf_.path(), {}, {}},
                        fmt::format("key '{}': found '{}', needed one of {}", kPre, name,
                                    known_pre_tokenizers()));
        return std::move(*pre);
    }

    std::string byte_level_json() {
        const PreTokenizer pre = named_pre_tokenizer();
        bos_default_ = pre.adds_bos;
        const Json bytes = {{"type", "ByteLevel"},
                            {"add_prefix_space", true},
                            {"trim_offsets", false},
                            {"use_regex", true}};
        Json post = template_processing();
        if (post.is_null())
            post = bytes;
        else
            post = {{"type", "Sequence"}, {"processors", {bytes, post}}};
        return assemble({{"normalizer", pre.normalizer},
                         {"pre_tokenizer", pre.pre_tokenizer},
                         {"post_processor", post},
                         {"decoder", bytes}},
                        {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", nullptr},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", false},
                         {"byte_fallback", false},
                         {"ignore_merges", pre.ignore_merges}},
                        vocab_json(), merges_json(listed_merges()));
    }

    std::string sentencepiece_json() {
        bos_default_ = true;
        const bool prefix = gguf_.get<bool>("tokenizer.ggml.add_space_prefix", kind_ == "llama");
        const Json mark = {{"type", "Replace"},
                           {"pattern", {{"String", " "}}},
                           {"content", std::string(kSpaceMark)}};
        Json normalizer = mark, pre = nullptr;
        Json decoders = {{{"type", "Replace"},
                          {"pattern", {{"String", std::string(kSpaceMark)}}},
                          {"content", " "}},
                         {{"type", "ByteFallback"}},
                         {{"type", "Fuse"}}};
        if (prefix) {
            normalizer = {
                {"type", "Sequence"},
                {"normalizers",
                 Json::array({{{"type", "Prepend"}, {"prepend", std::string(kSpaceMark)}}, mark})}};
            decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
        }
        const auto unknown = id_at("tokenizer.ggml.unknown_token_id");
        const bool listed = gguf_.has("tokenizer.ggml.merges");
        return assemble({{"normalizer", normalizer},
                         {"pre_tokenizer", pre},
                         {"post_processor", template_processing()},
                         {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}}},
                        {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", unknown ? Json(tokens_[*unknown]) : Json(nullptr)},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", true},
                         {"byte_fallback", true},
                         {"ignore_merges", false}},
                        vocab_json(), merges_json(listed ? listed_merges() : merges_from_scores()));
    }

    Json config() const {
        Json c = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                  {"add_bos_token", adds_bos()},
                  {"add_eos_token", adds_eos()},
                  {"clean_up_tokenization_spaces", false}};
        for (const NamedId& n : kNamed)
            if (const auto id = id_at(n.key)) c[n.name] = tokens_[*id];
        const auto text = [&](const std::string& key) {
            Json t = gguf_.get<std::string>(key);
            try {
                t.dump();
            } catch (const Json::exception&) {
                gguf_.fail(key, "is not UTF-8");
            }
            return t;
        };
        const std::string main = "tokenizer.chat_template";
        const auto names = gguf_.strings("tokenizer.chat_templates");
        if (names.empty()) {
            if (gguf_.has(main)) c["chat_template"] = text(main);
            return c;
        }
        c["chat_template"] = Json::array();
        if (gguf_.has(main))
            c["chat_template"].push_back({{"name", "default"}, {"template", text(main)}});
        for (const std::string_view name : names)
            c["chat_template"].push_back({{"name", std::string(name)},
                                          {"template", text(fmt::format("{}.{}", main, name))}});
        return c;
    }

    const GgufModel& gguf_;
    std::string kind_;
    std::vector<std::string> tokens_;
    std::vector<TokenType> types_;
    std::unordered_map<std::string, int32_t> ids_;
    bool bos_default_ = false;
};

}  // namespace

GgufTokenizer rebuild_tokenizer(const GgufModel& gguf) {
    return Rebuilder(gguf).run();
}

}  // namespace exl3
