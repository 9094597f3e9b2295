#include "gen/model_defaults.h"

#include <algorithm>
#include <array>

namespace exl3 {
namespace {

constexpr std::array<std::string_view, 8> kEndOfTurn = {
    "<|im_end|>",    "<|eot_id|>", "<|eom_id|>", "<|endoftext|>",
    "<end_of_turn>", "<turn|>",    "<|return|>", "<|call|>"};

}  // namespace

std::vector<int32_t> end_tokens(const HfConfig& config, const std::optional<HfConfig>& generation,
                                const Tokenizer& tokenizer) {
    std::vector<int32_t> ids;
    const auto add = [&](std::optional<int32_t> id) {
        if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
    };
    const auto add_special = [&](std::string_view token) {
        const auto id = tokenizer.id_of(token);
        if (id && tokenizer.is_special(*id)) add(id);
    };
    for (const int id : eos_token_ids(config, generation)) add(id);
    add(tokenizer.eos_id());
    for (const std::string_view token : kEndOfTurn) add_special(token);
    // Phi ends a turn with it. Where "<|return|>" exists (gpt-oss) it only ends a message in one.
    if (!tokenizer.id_of("<|return|>")) add_special("<|end|>");
    if (ids.empty()) add_special("</s>");
    return ids;
}

SamplerParams default_params(const std::optional<HfConfig>& generation) {
    SamplerParams p;
    bool any = false;
    const auto take = [&](const char* key, auto& field) {
        if (!generation || !generation->has(key)) return;
        field = generation->get<std::decay_t<decltype(field)>>(key);
        any = true;
    };
    take("temperature", p.temperature);
    take("top_k", p.top_k);
    take("top_p", p.top_p);
    take("min_p", p.min_p);
    take("typical_p", p.typical);
    take("repetition_penalty", p.repetition_penalty);
    return any ? p : recommended_params();
}

std::shared_ptr<const SamplerVocab> sampler_vocab(const Tokenizer& tokenizer) {
    std::vector<std::string> pieces;
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
        pieces.push_back(tokenizer.bytes_of(id));
    return std::make_shared<const SamplerVocab>(make_sampler_vocab(
        std::move(pieces),
        [&](int32_t id) { return tokenizer.is_special(id) || tokenizer.is_added(id); }));
}

}  // namespace exl3
