#include "text/normalize.h"

#include <fmt/format.h>

#include <vector>

#include "text/byte_level.h"
#include "text/normal_form.h"
#include "text/pattern.h"
#include "text/precompiled.h"
#include "text/unicode.h"

namespace exl3::text {
namespace {

/// Keeps the code points for which keep(c) holds.
template <typename F>
void filter(std::string& text, F&& keep) {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
        const size_t begin = i;
        if (keep(next_code_point(text, i))) out.append(text, begin, i - begin);
    }
    text = std::move(out);
}

struct Sequence final : Normalizer {
    std::vector<std::unique_ptr<Normalizer>> steps;
    void apply(std::string& text) const override {
        for (const auto& step : steps) step->apply(text);
    }
};

struct Form final : Normalizer {
    explicit Form(NormalForm f) : form(f) {}
    NormalForm form;
    void apply(std::string& text) const override { normalize(text, form); }
};

struct Lowercase final : Normalizer {
    void apply(std::string& text) const override { lowercase(text); }
};

struct Strip final : Normalizer {
    bool left = true, right = true;
    void apply(std::string& text) const override {
        size_t begin = 0, end = text.size();
        for (size_t i = 0; left && i < end && is_space(next_code_point(text, i));) begin = i;
        while (right && end > begin) {
            const size_t before = previous_index(text, end);
            size_t i = before;
            if (!is_space(next_code_point(text, i))) break;
            end = before;
        }
        text = text.substr(begin, end - begin);
    }
};

struct StripAccents final : Normalizer {
    void apply(std::string& text) const override {
        filter(text, [](char32_t c) { return !(category(c) & kMark); });
    }
};

struct Replace final : Normalizer {
    explicit Replace(Pattern p, std::string c) : pattern(std::move(p)), content(std::move(c)) {}
    Pattern pattern;
    std::string content;
    void apply(std::string& text) const override { text = pattern.replace(text, content); }
};

struct Prepend final : Normalizer {
    explicit Prepend(std::string p) : prefix(std::move(p)) {}
    std::string prefix;
    void apply(std::string& text) const override {
        if (!text.empty()) text.insert(0, prefix);
    }
};

struct ByteLevel final : Normalizer {
    void apply(std::string& text) const override {
        std::string out;
        append_stand_ins(out, text);
        text = std::move(out);
    }
};

// The clean-up that SentencePiece calls nmt: some control characters vanish, others are spaces.
struct Nmt final : Normalizer {
    void apply(std::string& text) const override {
        std::string out;
        for (size_t i = 0; i < text.size();) {
            const char32_t c = next_code_point(text, i);
            const bool dropped = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) ||
                                 c == 0x7F || c == 0x8F || c == 0x9F;
            if (dropped) continue;
            const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                               (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                               c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
            append_utf8(out, space ? U' ' : c);
        }
        text = std::move(out);
    }
};

struct Bert final : Normalizer {
    bool clean = true, chinese = true, accents = true, lower = true;

    static bool is_chinese(char32_t c) {
        return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
               (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
               (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
               (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
    }
    void apply(std::string& text) const override {
        if (clean) clean_up(text);
        if (chinese) space_chinese(text);
        if (accents) {
            normalize(text, NormalForm::nfd);
            filter(text, [](char32_t c) { return !(category(c) & kMn); });
        }
        if (lower) lowercase(text);
    }
    static void clean_up(std::string& text) {
        std::string out;
        for (size_t i = 0; i < text.size();) {
            const char32_t c = next_code_point(text, i);
            const bool line_or_tab = c == '\t' || c == '\n' || c == '\r';
            if (c == 0 || c == kReplacement || (!line_or_tab && (category(c) & (kCc | kCf | kCo))))
                continue;
            append_utf8(out, is_space(c) ? U' ' : c);
        }
        text = std::move(out);
    }
    static void space_chinese(std::string& text) {
        std::string out;
        for (size_t i = 0; i < text.size();) {
            const char32_t c = next_code_point(text, i);
            if (is_chinese(c)) out += ' ';
            append_utf8(out, c);
            if (is_chinese(c)) out += ' ';
        }
        text = std::move(out);
    }
};

}  // namespace

std::unique_ptr<Normalizer> load_normalizer(const JsonNode& node) {
    const std::string& type = node.text("type");
    if (type == "Sequence") {
        auto sequence = std::make_unique<Sequence>();
        for (const JsonNode& step : node.list("normalizers"))
            sequence->steps.push_back(load_normalizer(step));
        return sequence;
    }
    if (type == "NFC") return std::make_unique<Form>(NormalForm::nfc);
    if (type == "NFD") return std::make_unique<Form>(NormalForm::nfd);
    if (type == "NFKC") return std::make_unique<Form>(NormalForm::nfkc);
    if (type == "NFKD") return std::make_unique<Form>(NormalForm::nfkd);
    if (type == "Lowercase") return std::make_unique<Lowercase>();
    if (type == "StripAccents") return std::make_unique<StripAccents>();
    if (type == "ByteLevel") return std::make_unique<ByteLevel>();
    if (type == "Nmt") return std::make_unique<Nmt>();
    if (type == "Prepend") return std::make_unique<Prepend>(node.text("prepend"));
    if (type == "Precompiled") return load_precompiled(node);
    if (type == "Replace")
        return std::make_unique<Replace>(Pattern::load(node.at("pattern")), node.text("content"));
    if (type == "Strip") {
        auto strip = std::make_unique<Strip>();
        strip->left = node.flag("strip_left", true);
        strip->right = node.flag("strip_right", true);
        return strip;
    }
    if (type == "BertNormalizer") {
        auto bert = std::make_unique<Bert>();
        bert->clean = node.flag("clean_text", true);
        bert->chinese = node.flag("handle_chinese_chars", true);
        bert->lower = node.flag("lowercase", true);
        bert->accents = node.flag("strip_accents", bert->lower);
        return bert;
    }
    node.at("type").fail(fmt::format("is the unknown normalizer '{}'", type), Errc::unsupported);
}

}  // namespace exl3::text
