#include "text/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include "text/byte_level.h"
#include "text/pattern.h"
#include "text/unicode.h"

namespace exl3::text {
namespace {

/// A stage that needs each token as a whole.
struct TokenStage : DecodeStage {
    explicit TokenStage(DecodeStage& n) : next(n) {}
    DecodeStage& next;
    std::string held;
    bool open = false;

    virtual void token(std::string_view text) = 0;
    virtual void end() {}
    void push(std::string_view text, bool last) override {
        if (last && !open) return token(text);
        held += text;
        open = !last;
        if (!last) return;
        const std::string whole = std::exchange(held, {});
        token(whole);
    }
    void finish() override {
        if (open) push({}, true);
        end();
        next.finish();
    }
};

/// A step whose stages rewrite one token at a time, knowing only whether it is the first.
using Rewrite = std::function<void(std::string_view token, bool first, std::string& out)>;
struct RewriteStep final : DecodeStep {
    explicit RewriteStep(Rewrite r) : rewrite(std::move(r)) {}
    Rewrite rewrite;
    struct Stage final : TokenStage {
        Stage(DecodeStage& n, const Rewrite& r, bool f) : TokenStage(n), rewrite(r), first(f) {}
        const Rewrite& rewrite;
        bool first;
        void token(std::string_view text) override {
            std::string out;
            rewrite(text, first, out);
            first = false;
            next.push(out, true);
        }
    };
    std::unique_ptr<DecodeStage> start(DecodeMode mode, DecodeStage& next) const override {
        return std::make_unique<Stage>(next, rewrite, !mode.continues);
    }
};

/// All tokens become one.
struct Fuse final : DecodeStep {
    struct Stage final : DecodeStage {
        explicit Stage(DecodeStage& n) : next(n) {}
        DecodeStage& next;
        void push(std::string_view text, bool) override { next.push(text, false); }
        void finish() override {
            next.push({}, true);
            next.finish();
        }
    };
    std::unique_ptr<DecodeStage> start(DecodeMode, DecodeStage& next) const override {
        return std::make_unique<Stage>(next);
    }
};

/// Stand-ins to bytes, all tokens in a row read as UTF-8. A token with other characters is text.
struct ByteLevelStep final : DecodeStep {
    struct Stage final : TokenStage {
        Stage(DecodeStage& n, bool r) : TokenStage(n), raw(r) {}
        bool raw;
        std::string bytes;  // an incomplete UTF-8 sequence
        void token(std::string_view text) override {
            const std::optional<std::string> mapped = bytes_of_stand_ins(text);
            bytes += mapped ? std::string_view(*mapped) : text;
            if (raw) return next.push(std::exchange(bytes, {}), false);
            std::string out;
            size_t i = 0;
            while (i < bytes.size()) {
                const Utf8Step step = utf8_step(std::string_view(bytes).substr(i));
                if (step.kind == Utf8Step::Kind::incomplete) break;
                if (step.kind == Utf8Step::Kind::valid)
                    out.append(bytes, i, step.bytes);
                else
                    append_utf8(out, kReplacement);
                i += step.bytes;
            }
            bytes.erase(0, i);
            next.push(out, false);
        }
        void end() override {
            std::string out;
            if (!bytes.empty()) append_utf8(out, kReplacement);
            next.push(out, true);
        }
    };
    std::unique_ptr<DecodeStage> start(DecodeMode mode, DecodeStage& next) const override {
        return std::make_unique<Stage>(next, mode.raw_bytes);
    }
};

std::optional<char> byte_token(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    uint8_t value = 0;
    const auto [end, ec] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
    if (ec != std::errc() || end != token.data() + 5) return std::nullopt;
    return static_cast<char>(value);
}

/// <0xHH> tokens to bytes. A run of them is judged as a whole: valid UTF-8, or one U+FFFD a byte.
/// So a run is held back until another token ends it.
struct ByteFallback final : DecodeStep {
    struct Stage final : TokenStage {
        Stage(DecodeStage& n, bool r) : TokenStage(n), raw(r) {}
        bool raw;
        std::string run;
        void flush() {
            if (run.empty()) return;
            if (is_valid_utf8(run)) {
                next.push(run, true);
            } else {
                for (size_t i = 0; i < run.size(); ++i) next.push("\xEF\xBF\xBD", true);
            }
            run.clear();
        }
        void token(std::string_view text) override {
            const std::optional<char> byte = byte_token(text);
            if (byte && raw) return next.push({&*byte, 1}, true);
            if (byte) {
                run += *byte;
                return;
            }
            flush();
            next.push(text, true);
        }
        void end() override { flush(); }
    };
    std::unique_ptr<DecodeStage> start(DecodeMode mode, DecodeStage& next) const override {
        return std::make_unique<Stage>(next, mode.raw_bytes);
    }
};

/// Drops up to `begin` copies of a character at the beginning of each token and `end` at its end.
struct Strip final : DecodeStep {
    std::string content;
    int64_t begin = 0, end = 0;

    struct Stage final : DecodeStage {
        Stage(DecodeStage& n, const Strip& s, bool keep_first)
            : next(n), strip(s), left(keep_first ? 0 : s.begin) {}
        DecodeStage& next;
        const Strip& strip;
        int64_t left;      // copies that may still be dropped
        std::string held;  // copies that are dropped if the token ends here
        void push(std::string_view text, bool last) override {
            const std::string& c = strip.content;
            for (; left > 0 && text.starts_with(c); --left) text.remove_prefix(c.size());
            if (!text.empty()) left = 0;
            std::string all = std::exchange(held, {});
            all += text;
            size_t keep = all.size();
            for (int64_t n = 0; n < strip.end && keep >= c.size(); ++n) {
                if (all.compare(keep - c.size(), c.size(), c) != 0) break;
                keep -= c.size();
            }
            if (!last) held = all.substr(keep);
            next.push(std::string_view(all).substr(0, keep), last);
            if (last) left = strip.begin;
        }
        void finish() override { next.finish(); }
    };
    std::unique_ptr<DecodeStage> start(DecodeMode mode, DecodeStage& next) const override {
        return std::make_unique<Stage>(next, *this, mode.continues);
    }
};

/// Tokens that end words carry a suffix, which becomes a space between words.
struct BpeStep final : DecodeStep {
    explicit BpeStep(std::string s) : suffix(std::move(s)) {}
    Pattern suffix;
    struct Stage final : TokenStage {
        Stage(DecodeStage& n, const Pattern& s) : TokenStage(n), suffix(s) {}
        const Pattern& suffix;
        std::optional<std::string> before;  // the last token is treated differently
        void token(std::string_view text) override {
            if (before) next.push(suffix.replace(*before, " "), true);
            before = text;
        }
        void end() override {
            if (before) next.push(suffix.replace(*before, ""), true);
        }
    };
    std::unique_ptr<DecodeStage> start(DecodeMode, DecodeStage& next) const override {
        return std::make_unique<Stage>(next, suffix);
    }
};

/// Drops repeated tokens, then the pad token.
struct Ctc final : DecodeStep {
    Rewrite rewrite;
    struct Stage final : TokenStage {
        Stage(DecodeStage& n, const Rewrite& r) : TokenStage(n), rewrite(r) {}
        const Rewrite& rewrite;
        std::optional<std::string> before;
        void token(std::string_view text) override {
            if (before && *before == text) return;
            before = text;
            std::string out;
            rewrite(text, false, out);
            if (!out.empty()) next.push(out, true);
        }
    };
    std::unique_ptr<DecodeStage> start(DecodeMode, DecodeStage& next) const override {
        return std::make_unique<Stage>(next, rewrite);
    }
};

// English punctuation written apart from its word joins it again.
std::string clean_up(std::string text) {
    static const std::pair<Pattern, std::string_view> kRules[] = {
        {Pattern(" ."), "."},     {Pattern(" ?"), "?"},           {Pattern(" !"), "!"},
        {Pattern(" ,"), ","},     {Pattern(" ' "), "'"},          {Pattern(" n't"), "n't"},
        {Pattern(" 'm"), "'m"},   {Pattern(" do not"), " don't"}, {Pattern(" 's"), "'s"},
        {Pattern(" 've"), "'ve"}, {Pattern(" 're"), "'re"}};
    for (const auto& [from, to] : kRules) text = from.replace(text, to);
    return text;
}

std::unique_ptr<DecodeStep> replace_step(Pattern pattern, std::string content) {
    const auto shared = std::make_shared<const Pattern>(std::move(pattern));
    return std::make_unique<RewriteStep>(
        [shared, content = std::move(content)](std::string_view token, bool, std::string& out) {
            out = shared->replace(token, content);
        });
}

std::unique_ptr<DecodeStep> metaspace_step(const JsonNode& node) {
    std::string mark = node.text("replacement", "\xE2\x96\x81");
    const std::string scheme =
        node.text("prepend_scheme", node.flag("add_prefix_space", true) ? "always" : "never");
    const auto shared = std::make_shared<const Pattern>(std::move(mark));
    return std::make_unique<RewriteStep>(
        [shared, drops = scheme != "never"](std::string_view token, bool first, std::string& out) {
            out = shared->replace(token, first && drops ? "" : " ");
        });
}

std::unique_ptr<DecodeStep> word_piece_step(const JsonNode& node) {
    return std::make_unique<RewriteStep>(
        [prefix = node.text("prefix", "##"), cleanup = node.flag("cleanup", true)](
            std::string_view token, bool first, std::string& out) {
            if (!first && token.starts_with(prefix))
                token.remove_prefix(prefix.size());
            else if (!first)
                out = " ";
            out += token;
            if (cleanup) out = clean_up(std::move(out));
        });
}

std::unique_ptr<DecodeStep> ctc_step(const JsonNode& node) {
    auto step = std::make_unique<Ctc>();
    const auto pad = std::make_shared<const Pattern>(node.text("pad_token", "<pad>"));
    const auto word = std::make_shared<const Pattern>(node.text("word_delimiter_token", "|"));
    step->rewrite = [pad, word, cleanup = node.flag("cleanup", true)](std::string_view token, bool,
                                                                      std::string& out) {
        out = pad->replace(token, "");
        if (cleanup) out = word->replace(clean_up(out), " ");
    };
    return step;
}

std::unique_ptr<DecodeStep> strip_step(std::string content, int64_t begin, int64_t end) {
    auto strip = std::make_unique<Strip>();
    strip->content = std::move(content);
    strip->begin = begin;
    strip->end = end;
    return strip;
}

void load_step(const JsonNode& node, std::vector<std::unique_ptr<DecodeStep>>& steps) {
    const std::string& type = node.text("type");
    if (type == "Sequence") {
        for (const JsonNode& step : node.list("decoders")) load_step(step, steps);
    } else if (type == "ByteLevel") {
        steps.push_back(std::make_unique<ByteLevelStep>());
    } else if (type == "ByteFallback") {
        steps.push_back(std::make_unique<ByteFallback>());
    } else if (type == "Fuse") {
        steps.push_back(std::make_unique<Fuse>());
    } else if (type == "Replace") {
        steps.push_back(replace_step(Pattern::load(node.at("pattern")), node.text("content")));
    } else if (type == "Strip") {
        const std::string& content = node.text("content");
        if (content.empty() || utf8_length(content[0]) != content.size())
            node.at("content").fail("needs a single character");
        const int64_t start = node.integer("start"), stop = node.integer("stop");
        steps.push_back(strip_step(content, start, stop));
    } else if (type == "Metaspace") {
        steps.push_back(metaspace_step(node));
    } else if (type == "WordPiece") {
        steps.push_back(word_piece_step(node));
    } else if (type == "BPEDecoder") {
        steps.push_back(std::make_unique<BpeStep>(node.text("suffix", "</w>")));
    } else if (type == "CTC") {
        steps.push_back(ctc_step(node));
    } else {
        node.at("type").fail(fmt::format("is the unknown decoder '{}'", type), Errc::unsupported);
    }
}

/// Where the text ends up.
struct Sink final : DecodeStage {
    Sink(std::string& o, bool spaces) : out(o), spaces_between(spaces) {}
    std::string& out;
    bool spaces_between;
    bool first = true;
    void push(std::string_view text, bool) override {
        if (spaces_between && !std::exchange(first, false)) out += ' ';
        out += text;
    }
    void finish() override {}
};

}  // namespace

Decoder Decoder::load(const JsonNode& node) {
    std::vector<std::unique_ptr<DecodeStep>> steps;
    load_step(node, steps);
    return Decoder(std::move(steps));
}

Decoder::Run::Run(const Decoder& decoder, DecodeMode mode, std::string& out) {
    auto sink = std::make_unique<Sink>(out, decoder.joins_with_spaces_);
    sink->first = !mode.continues;
    stages_.push_back(std::move(sink));
    for (auto step = decoder.steps_.rbegin(); step != decoder.steps_.rend(); ++step)
        stages_.push_back((*step)->start(mode, *stages_.back()));
}

Decoder sentencepiece_decoder(bool strip_space) {
    std::vector<std::unique_ptr<DecodeStep>> steps;
    steps.push_back(replace_step(Pattern("\xE2\x96\x81"), " "));
    steps.push_back(std::make_unique<ByteFallback>());
    steps.push_back(std::make_unique<Fuse>());
    if (strip_space) steps.push_back(strip_step(" ", 1, 0));
    return Decoder(std::move(steps));
}

}  // namespace exl3::text
