#include "text/pretokenize.h"

#include <fmt/format.h>

#include "text/byte_level.h"
#include "text/pattern.h"
#include "text/scripts.h"
#include "text/split.h"
#include "text/unicode.h"

namespace exl3::text {
namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

bool is_ascii_punctuation(char32_t c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}
bool is_punctuation(char32_t c) {
    return is_ascii_punctuation(c) || (category(c) & kPunctuation) != 0;
}

/// A step that cuts each piece without changing characters.
struct Cutter : PreTokenizer {
    virtual void cut(const Pieces& pieces, Pieces::Range piece,
                     std::vector<Pieces::Range>& out) const = 0;
    void apply(Pieces& pieces) const override {
        std::vector<Pieces::Range> out;
        out.reserve(pieces.text.size() / 4 + 1);
        for (const Pieces::Range piece : pieces.ranges) cut(pieces, piece, out);
        pieces.ranges = std::move(out);
    }
};

struct Split final : Cutter {
    Split(Pattern p, SplitBehavior b, bool i) : pattern(std::move(p)), behavior(b), invert(i) {}
    Pattern pattern;
    SplitBehavior behavior;
    bool invert;
    void cut(const Pieces& pieces, Pieces::Range piece,
             std::vector<Pieces::Range>& out) const override {
        Splitter splitter(piece.begin, behavior, invert, out);
        pattern.for_each(pieces.piece(piece), [&](Regex::Match m) {
            splitter.match(piece.begin + m.begin, piece.begin + m.end);
        });
        splitter.finish(piece.end);
    }
};

/// Matches single code points by a predicate.
template <typename Predicate>
struct CharSplit final : Cutter {
    CharSplit(Predicate p, SplitBehavior b) : is_match(p), behavior(b) {}
    Predicate is_match;
    SplitBehavior behavior;
    void cut(const Pieces& pieces, Pieces::Range piece,
             std::vector<Pieces::Range>& out) const override {
        Splitter splitter(piece.begin, behavior, false, out);
        for (size_t i = piece.begin; i < piece.end;) {
            const size_t begin = i;
            if (is_match(next_code_point(pieces.text, i))) splitter.match(begin, i);
        }
        splitter.finish(piece.end);
    }
};

template <typename Predicate>
std::unique_ptr<PreTokenizer> char_split(Predicate p, SplitBehavior b) {
    return std::make_unique<CharSplit<Predicate>>(p, b);
}

/// Runs of \w or of other characters that are not white space: \w+|[^\w\s]+.
struct Words final : Cutter {
    void cut(const Pieces& pieces, Pieces::Range piece,
             std::vector<Pieces::Range>& out) const override {
        enum class Run { space, word, other } run = Run::space;
        size_t begin = piece.begin;
        for (size_t i = piece.begin; i < piece.end;) {
            const size_t here = i;
            const char32_t c = next_code_point(pieces.text, i);
            const Run now = is_word(c) ? Run::word : is_space(c) ? Run::space : Run::other;
            if (now == run) continue;
            if (run != Run::space) out.push_back({begin, here});
            run = now;
            begin = here;
        }
        if (run != Run::space) out.push_back({begin, piece.end});
    }
};

struct FixedLength final : Cutter {
    int64_t length = 5;
    void cut(const Pieces& pieces, Pieces::Range piece,
             std::vector<Pieces::Range>& out) const override {
        for (size_t i = piece.begin; i < piece.end;) {
            const size_t begin = i;
            for (int64_t n = 0; n < length && i < piece.end; ++n) next_code_point(pieces.text, i);
            out.push_back({begin, i});
        }
    }
};

/// A step that writes each piece anew.
struct Rewriter : PreTokenizer {
    virtual void rewrite(std::string_view piece, bool first_of_input, std::string& out) const = 0;
    bool only_splits() const override { return false; }
    void apply(Pieces& pieces) const override {
        std::string text;
        text.reserve(pieces.text.size() + pieces.ranges.size() * 3);
        for (Pieces::Range& range : pieces.ranges) {
            const size_t begin = text.size();
            rewrite(pieces.piece(range), pieces.starts_input && range.begin == 0, text);
            range = {begin, text.size()};
        }
        pieces.replace_text(std::move(text));
    }
};

struct SpacePrefix final : Rewriter {
    void rewrite(std::string_view piece, bool, std::string& out) const override {
        if (piece[0] != ' ') out += ' ';
        out += piece;
    }
};

struct ToStandIns final : Rewriter {
    bool maps_bytes() const override { return true; }
    void rewrite(std::string_view piece, bool, std::string& out) const override {
        append_stand_ins(out, piece);
    }
};

struct FromStandIns final : Rewriter {
    void rewrite(std::string_view piece, bool, std::string& out) const override {
        out += bytes_of_stand_ins(piece).value_or("");
    }
};

struct Metaspace final : Rewriter {
    enum class Prepend { always, first, never } prepend = Prepend::always;
    std::string mark;
    void rewrite(std::string_view piece, bool first_of_input, std::string& out) const override {
        const bool wanted =
            prepend == Prepend::always || (prepend == Prepend::first && first_of_input);
        if (wanted && piece[0] != ' ' && !piece.starts_with(mark)) out += mark;
        for (const char c : piece)
            if (c == ' ')
                out += mark;
            else
                out += c;
    }
};

void load_metaspace(const JsonNode& node, PreTokenizers& steps) {
    auto meta = std::make_unique<Metaspace>();
    meta->mark = node.text("replacement", "\xE2\x96\x81");
    if (meta->mark.empty() || utf8_length(meta->mark[0]) != meta->mark.size())
        node.at("replacement").fail("needs a single character");
    using Prepend = Metaspace::Prepend;
    const std::string scheme =
        node.text("prepend_scheme", node.flag("add_prefix_space", true) ? "always" : "never");
    if (scheme == "always")
        meta->prepend = Prepend::always;
    else if (scheme == "first")
        meta->prepend = Prepend::first;
    else if (scheme == "never")
        meta->prepend = Prepend::never;
    else
        node.at("prepend_scheme")
            .fail(fmt::format("is '{}', needs always, first or never", scheme));
    Pattern pattern(meta->mark);
    steps.push_back(std::move(meta));
    if (node.flag("split", true))
        steps.push_back(
            std::make_unique<Split>(std::move(pattern), SplitBehavior::merged_with_next, false));
}

void load_byte_level(const JsonNode& node, PreTokenizers& steps) {
    if (node.flag("add_prefix_space", true)) steps.push_back(std::make_unique<SpacePrefix>());
    if (node.flag("use_regex", true))
        steps.push_back(
            std::make_unique<Split>(Pattern(Regex(kGpt2Pattern)), SplitBehavior::isolated, false));
    steps.push_back(std::make_unique<ToStandIns>());
}

void load_step(const JsonNode& node, PreTokenizers& steps) {
    const std::string& type = node.text("type");
    if (type == "Sequence") {
        for (const JsonNode& step : node.list("pretokenizers")) load_step(step, steps);
    } else if (type == "Split") {
        steps.push_back(std::make_unique<Split>(Pattern::load(node.at("pattern")),
                                                load_behavior(node, SplitBehavior::removed),
                                                node.flag("invert", false)));
    } else if (type == "ByteLevel") {
        load_byte_level(node, steps);
    } else if (type == "Metaspace") {
        load_metaspace(node, steps);
    } else if (type == "Digits") {
        steps.push_back(char_split([](char32_t c) { return (category(c) & kNumber) != 0; },
                                   node.flag("individual_digits", false)
                                       ? SplitBehavior::isolated
                                       : SplitBehavior::contiguous));
    } else if (type == "Punctuation") {
        steps.push_back(char_split(is_punctuation, load_behavior(node, SplitBehavior::isolated)));
    } else if (type == "Whitespace") {
        steps.push_back(std::make_unique<Words>());
    } else if (type == "WhitespaceSplit") {
        steps.push_back(char_split(is_space, SplitBehavior::removed));
    } else if (type == "CharDelimiterSplit" || type == "Delimiter") {
        steps.push_back(std::make_unique<Split>(Pattern(node.text("delimiter")),
                                                SplitBehavior::removed, false));
    } else if (type == "BertPreTokenizer") {
        steps.push_back(char_split(is_space, SplitBehavior::removed));
        steps.push_back(char_split(is_punctuation, SplitBehavior::isolated));
    } else if (type == "UnicodeScripts") {
        steps.push_back(std::make_unique<Split>(Pattern(Regex(script_run_pattern())),
                                                SplitBehavior::removed, true));
    } else if (type == "FixedLength") {
        auto fixed = std::make_unique<FixedLength>();
        fixed->length = node.integer("length", 5);
        if (fixed->length < 1) node.at("length").fail("needs at least 1");
        steps.push_back(std::move(fixed));
    } else {
        node.at("type").fail(fmt::format("is the unknown pre-tokenizer '{}'", type),
                             Errc::unsupported);
    }
}

}  // namespace

PreTokenizers load_pre_tokenizers(const JsonNode& node) {
    PreTokenizers steps;
    load_step(node, steps);
    return steps;
}

bool gives_bytes(const PreTokenizers& steps) {
    int maps = 0;
    for (const auto& step : steps) {
        if (maps > 0 && !step->only_splits()) return false;
        if (step->maps_bytes()) ++maps;
    }
    return maps == 1;
}

void keep_bytes(PreTokenizers& steps) {
    // Steps behind the mapping see stand-ins, as in the reference; without any the mapping is void.
    if (steps.back()->maps_bytes())
        steps.pop_back();
    else
        steps.push_back(std::make_unique<FromStandIns>());
}

}  // namespace exl3::text
