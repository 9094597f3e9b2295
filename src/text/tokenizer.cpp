#include "text/tokenizer.h"

#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace exl3 {

using text::AddedToken;
using text::Segment;

// ---- Look-ups

std::optional<std::string_view> Tokenizer::Impl::token(int32_t id) const {
    if (const AddedToken* t = added.by_id(id)) return t->content;
    if (model->vocab().has(id)) return model->vocab().text(id);
    return std::nullopt;
}

std::optional<int32_t> Tokenizer::Impl::id_of(std::string_view token) const {
    if (const AddedToken* t = added.by_content(token)) return t->id;
    const int32_t id = model->vocab().find(token);
    return id >= 0 ? std::optional(id) : std::nullopt;
}

std::optional<int32_t> Tokenizer::Impl::named_id(const std::string& name) const {
    const auto it = named_tokens.find(name);
    return it == named_tokens.end() ? std::nullopt : id_of(it->second);
}

bool Tokenizer::Impl::is_special(int32_t id) const {
    const AddedToken* t = added.by_id(id);
    return t && t->special;
}

// ---- Encoding

std::vector<int32_t> Tokenizer::Impl::encode(std::string_view text, bool parse_special) const {
    std::string repaired;
    if (!text::is_valid_utf8(text)) {
        repaired = text::replace_invalid_utf8(text);
        text = repaired;
    }
    std::vector<int32_t> ids;
    std::vector<Segment> segments;
    added.split(text, false, parse_special, segments);
    for (const Segment& s : segments) {
        if (s.id >= 0) {
            ids.push_back(s.id);
            continue;
        }
        const std::string_view part = text.substr(s.begin, s.end - s.begin);
        if (!normalizer) {
            encode_normalized(part, s.begin == 0, parse_special, ids);
            continue;
        }
        std::string normal(part);
        normalizer->apply(normal);
        encode_normalized(normal, s.begin == 0, parse_special, ids);
    }
    return ids;
}

void Tokenizer::Impl::encode_normalized(std::string_view text, bool starts_input,
                                        bool parse_special, std::vector<int32_t>& ids) const {
    std::vector<Segment> segments;
    added.split(text, true, parse_special, segments);
    for (const Segment& s : segments) {
        if (s.id >= 0) {
            ids.push_back(s.id);
            continue;
        }
        if (s.begin == s.end) continue;
        text::Pieces pieces;
        pieces.text = text.substr(s.begin, s.end - s.begin);
        pieces.ranges = {{0, pieces.text.size()}};
        pieces.starts_input = starts_input && s.begin == 0;
        for (const auto& step : pre_tokenizers) step->apply(pieces);
        for (const text::Pieces::Range range : pieces.ranges)
            model->encode(pieces.piece(range), ids);
    }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    std::vector<int32_t> ids = impl_->encode(text, options.parse_special);
    return options.add_special ? impl_->post_processor.apply(std::move(ids)) : ids;
}

std::vector<int32_t> Tokenizer::encode_prompt(std::string_view text) const {
    std::vector<int32_t> ids = impl_->encode(text, true);
    const std::optional<int32_t> bos = bos_id();
    const bool has_bos = bos && !ids.empty() && ids.front() == *bos;
    ids = impl_->post_processor.apply(std::move(ids));
    if (!bos || !adds_bos()) return ids;
    if (!impl_->post_processor.begins_with(*bos)) {
        if (!has_bos) ids.insert(ids.begin(), *bos);
    } else if (has_bos) {
        ids.erase(ids.begin());
    }
    return ids;
}

// ---- Decoding

std::string Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
    std::string out;
    text::Decoder::Run run(impl_->decoder, {.continues = options.continues}, out);
    for (const int32_t id : ids) {
        if (options.skip_special && impl_->is_special(id)) continue;
        if (const auto token = impl_->token(id)) run.push(*token);
    }
    run.finish();
    return out;
}

std::string Tokenizer::bytes_of(int32_t id) const {
    std::string out;
    text::Decoder::Run run(impl_->decoder, {.continues = true, .raw_bytes = true}, out);
    if (const auto token = impl_->token(id)) run.push(*token);
    run.finish();
    return out;
}

struct StreamDecoder::State {
    State(Tokenizer t, DecodeOptions o)
        : tokenizer(std::move(t)),
          skip_special(o.skip_special),
          run(tokenizer.impl_->decoder, {.continues = o.continues}, out) {}
    Tokenizer tokenizer;
    bool skip_special;
    std::string out;
    text::Decoder::Run run;
};

StreamDecoder::StreamDecoder(Tokenizer tokenizer, DecodeOptions options)
    : state_(std::make_unique<State>(std::move(tokenizer), options)) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

void StreamDecoder::push(int32_t id, std::string& out) {
    const Tokenizer::Impl& impl = *state_->tokenizer.impl_;
    if (state_->skip_special && impl.is_special(id)) return;
    if (const auto token = impl.token(id)) state_->run.push(*token);
    out += state_->out;
    state_->out.clear();
}

std::string StreamDecoder::push(int32_t id) {
    std::string out;
    push(id, out);
    return out;
}

std::string StreamDecoder::flush() {
    state_->run.finish();
    return std::exchange(state_->out, {});
}

// ---- What the tokenizer knows about itself

int32_t Tokenizer::vocab_size() const {
    return impl_->vocab_size;
}
std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
    return impl_->id_of(token);
}
std::string Tokenizer::token_of(int32_t id) const {
    return std::string(impl_->token(id).value_or(""));
}
bool Tokenizer::is_special(int32_t id) const {
    return impl_->is_special(id);
}
bool Tokenizer::is_added(int32_t id) const {
    return impl_->added.by_id(id) != nullptr;
}
std::optional<int32_t> Tokenizer::bos_id() const {
    return impl_->named_id("bos_token");
}
std::optional<int32_t> Tokenizer::eos_id() const {
    return impl_->named_id("eos_token");
}
std::optional<int32_t> Tokenizer::pad_id() const {
    return impl_->named_id("pad_token");
}
std::optional<int32_t> Tokenizer::unk_id() const {
    const std::string& unk = impl_->model->unk_token();
    return unk.empty() ? impl_->named_id("unk_token") : impl_->id_of(unk);
}
const std::map<std::string, std::string>& Tokenizer::named_tokens() const {
    return impl_->named_tokens;
}
const std::vector<ChatTemplateSource>& Tokenizer::chat_templates() const {
    return impl_->chat_templates;
}
bool Tokenizer::adds_bos() const {
    const std::optional<int32_t> bos = bos_id();
    if (!bos) return false;
    return impl_->post_processor.is_template() ? impl_->post_processor.begins_with(*bos)
                                               : impl_->add_bos_token;
}

}  // namespace exl3
