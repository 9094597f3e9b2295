#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace exl3 {

struct EncodeOptions {
    bool add_special = true;    ///< put what the post-processor adds (BOS, ...) around the ids
    bool parse_special = true;  ///< special tokens written in the text become their ids; without,
                                ///< they are ordinary text (for text that a user controls)
};

struct DecodeOptions {
    bool skip_special = true;  ///< special tokens contribute no text
    bool continues = false;    ///< the ids go on from earlier text: a leading space stays
};

/// A chat template as the files of the model have it.
struct ChatTemplateSource {
    std::string name;  ///< "default" if the file gives none
    std::string source;
};

/// The tokenizer of a model folder: text to token ids and back, exactly as the Hugging Face
/// tokenizers library does it. Cheap to copy; all const members may be called from any thread.
class Tokenizer {
public:
    /// Reads tokenizer.json, or without it tokenizer.model (SentencePiece), and what there is of
    /// tokenizer_config.json, special_tokens_map.json and added_tokens.json. Throws Error naming
    /// file and key: {io} if there is no tokenizer, {invalid_file} for damaged ones, {unsupported}
    /// for components this build does not know.
    static Tokenizer load(const std::filesystem::path& folder);
    /// From texts in memory. @param config  tokenizer_config.json, may be empty
    static Tokenizer from_json(std::string_view tokenizer, std::string_view config = {});

    /// Text to ids. Bytes that are not UTF-8 count as U+FFFD, one for each maximal invalid part.
    /// Throws Error{invalid_argument} only where the file's expressions exceed their step limit, or
    /// its replacements grow the text past 256 MiB.
    std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
    /// A prompt as the model expects it: special tokens parsed and added, but a BOS that the text
    /// already begins with is not doubled, and one is added where only tokenizer_config.json asks.
    std::vector<int32_t> encode_prompt(std::string_view text) const;
    /// Ids to text, always valid UTF-8. Ids the tokenizer does not have contribute nothing.
    std::string decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

    /// One more than the largest id. The logits of a model may be wider.
    int32_t vocab_size() const;
    std::optional<int32_t> id_of(std::string_view token) const;
    /// The token as the vocabulary writes it ("Ġthe", "▁the", "<0x0A>"); empty for unknown ids.
    std::string token_of(int32_t id) const;
    /// The bytes it contributes in the middle of a text (" the", "\n"); may be part of a character.
    std::string bytes_of(int32_t id) const;
    bool is_special(int32_t id) const;  ///< left out by DecodeOptions::skip_special
    bool is_added(int32_t id) const;    ///< cut out of the text before the model sees it

    std::optional<int32_t> bos_id() const;
    std::optional<int32_t> eos_id() const;
    std::optional<int32_t> pad_id() const;
    std::optional<int32_t> unk_id() const;
    /// "bos_token", "eos_token", ... and what extra_special_tokens names, to their text: the
    /// variables a chat template sees. Absent ones are absent.
    const std::map<std::string, std::string>& named_tokens() const;
    /// Whether a prompt starts with BOS: the post-processor says so, or add_bos_token if there is
    /// no template.
    bool adds_bos() const;
    /// Templates in tokenizer_config.json; those in files of their own are not looked for.
    const std::vector<ChatTemplateSource>& chat_templates() const;

private:
    friend class StreamDecoder;
    friend class TokenizerLoader;
    struct Impl;
    explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<const Impl> impl_;
};

/// Decodes ids as they are generated. The pieces are valid UTF-8; what has been returned is always
/// a prefix of Tokenizer::decode of all ids, and after flush() it is the whole. An incomplete
/// character waits for its rest; in tokenizers with byte fallback a run of byte tokens waits for
/// its end, because whether the bytes are text is decided for the run. One thread at a time.
class StreamDecoder {
public:
    explicit StreamDecoder(Tokenizer tokenizer, DecodeOptions options = {});
    ~StreamDecoder();
    StreamDecoder(StreamDecoder&&) noexcept;
    StreamDecoder& operator=(StreamDecoder&&) noexcept;
    std::string push(int32_t id);             ///< new text, may be empty
    void push(int32_t id, std::string& out);  ///< the same, appended
    std::string flush();  ///< what is held back; the decoder must then not be used again

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace exl3
