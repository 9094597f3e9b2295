#include "import/pre_tokenizers.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace exl3 {
namespace {

// The expressions are those of the tokenizer.json files that the models came with.

// Words with contractions, groups of up to three digits, line ends apart (GPT-4, Llama 3).
constexpr const char* kDigits3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The same with every digit by itself (Qwen 2).
constexpr const char* kDigits1 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Capitals begin a word (Mistral's tekken).
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The same with contractions and groups of three digits (GPT-4o).
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Seed: symbols do not take line ends with them.
constexpr const char* kSeed =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json byte_level(bool own_regex) {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", own_regex}};
}

Json split(const char* regex) {
    return {{"type", "Split"},
            {"pattern", {{"Regex", regex}}},
            {"behavior", "Isolated"},
            {"invert", false}};
}

Json sequence(std::vector<Json> steps) {
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

Json single_digits() {
    return {{"type", "Digits"}, {"individual_digits", true}};
}

Json one_regex(const char* regex) {
    return sequence({split(regex), byte_level(false)});
}

Json nfc() {
    return {{"type", "NFC"}};
}

// Families of names that mean the same.
enum class Kind {
    gpt2,
    digits_gpt2,
    nfc_digits_gpt2,
    llama3,
    cl100k,
    qwen2,
    tekken,
    gpt4o,
    seed,
    deepseek3,
    deepseek_coder
};

constexpr struct {
    std::string_view name;
    Kind kind;
} kNames[] = {
    {"gpt-2", Kind::gpt2},
    {"gpt2", Kind::gpt2},
    {"phi-2", Kind::gpt2},
    {"mpt", Kind::gpt2},
    {"olmo", Kind::gpt2},
    {"jais", Kind::gpt2},
    {"trillion", Kind::gpt2},
    {"exaone4", Kind::gpt2},
    {"gigachat", Kind::gpt2},
    {"mellum", Kind::gpt2},
    {"modern-bert", Kind::gpt2},
    {"a.x-4.0", Kind::gpt2},
    {"granite-docling", Kind::gpt2},
    {"smollm", Kind::digits_gpt2},
    {"starcoder", Kind::digits_gpt2},
    {"refact", Kind::digits_gpt2},
    {"codeshell", Kind::digits_gpt2},
    {"exaone", Kind::digits_gpt2},
    {"minerva-7b", Kind::digits_gpt2},
    {"command-r", Kind::nfc_digits_gpt2},
    {"llama-bpe", Kind::llama3},
    {"llama3", Kind::llama3},
    {"llama-v3", Kind::llama3},
    {"falcon3", Kind::llama3},
    {"pixtral", Kind::llama3},
    {"lfm2", Kind::llama3},
    {"dbrx", Kind::cl100k},
    {"smaug-bpe", Kind::cl100k},
    {"glm4", Kind::cl100k},
    {"chatglm-bpe", Kind::cl100k},
    {"qwen2", Kind::qwen2},
    {"deepseek-r1-qwen", Kind::qwen2},
    {"megrez", Kind::qwen2},
    {"stablelm2", Kind::qwen2},
    {"hunyuan", Kind::qwen2},
    {"tekken", Kind::tekken},
    {"gpt-4o", Kind::gpt4o},
    {"llama4", Kind::gpt4o},
    {"seed-coder", Kind::seed},
    {"deepseek-v3", Kind::deepseek3},
    {"hunyuan-dense", Kind::deepseek3},
    {"deepseek-coder", Kind::deepseek_coder},
};

PreTokenizer build(Kind kind) {
    switch (kind) {
        case Kind::gpt2: return {.pre_tokenizer = byte_level(true)};
        case Kind::digits_gpt2:
            return {.pre_tokenizer = sequence({single_digits(), byte_level(true)})};
        case Kind::nfc_digits_gpt2:
            return {.normalizer = nfc(),
                    .pre_tokenizer = sequence({single_digits(), byte_level(true)})};
        case Kind::llama3:
            return {.pre_tokenizer = one_regex(kDigits3), .ignore_merges = true, .adds_bos = true};
        case Kind::cl100k: return {.pre_tokenizer = one_regex(kDigits3)};
        case Kind::qwen2: return {.normalizer = nfc(), .pre_tokenizer = one_regex(kDigits1)};
        case Kind::tekken:
            return {.pre_tokenizer = one_regex(kTekken), .ignore_merges = true, .adds_bos = true};
        case Kind::gpt4o: return {.pre_tokenizer = one_regex(kGpt4o), .ignore_merges = true};
        case Kind::seed: return {.pre_tokenizer = one_regex(kSeed)};
        case Kind::deepseek3:
            return {.pre_tokenizer =
                        sequence({split(R"(\p{N}{1,3})"), split("[一-龥\u3040-ゟ゠-ヿ]+"),
                                  split(kDeepSeek3), byte_level(false)})};
        case Kind::deepseek_coder:
            return {.pre_tokenizer = sequence(
                        {split(R"([\r\n])"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"),
                         split("[一-龥ࠀ-一가-\ud7ff]+"), single_digits(), byte_level(false)})};
    }
    return {};
}

}  // namespace

std::optional<PreTokenizer> pre_tokenizer_named(std::string_view name) {
    for (const auto& known : kNames)
        if (known.name == name) return build(known.kind);
    return std::nullopt;
}

std::string known_pre_tokenizers() {
    std::string all;
    for (const auto& known : kNames)
        all += fmt::format("{}{}", all.empty() ? "" : ", ", known.name);
    return all;
}

}  // namespace exl3
