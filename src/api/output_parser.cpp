#include "api/output_parser.h"

#include <fmt/format.h>

#include <mutex>
#include <random>

namespace exl3::api {
namespace {

constexpr int kEnd = TextFeed::kEnd;
using Kind = OutputEvent::Kind;

bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/// Gathers events, joins neighbours, and drops the white space that only separates the parts of an
/// answer from each other.
class Collector : public CallSink {
public:
    Collector(std::function<std::string()> make_id, size_t max_calls)
        : make_id_(std::move(make_id)), max_calls_(max_calls) {}

    void text(Kind kind, std::string_view piece) {
        for (const char c : piece) {
            // White space waits: what stands around reasoning and calls is layout.
            std::string& held = kind == Kind::content ? content_space_ : reasoning_space_;
            bool& begun = kind == Kind::content ? content_begun_ : reasoning_begun_;
            if (is_space(c)) {
                held += c;
                continue;
            }
            if (begun || !trims_start(kind)) add(kind, held);
            held.clear();
            begun = true;
            add(kind, std::string_view(&c, 1));
        }
    }
    /// Content from here on follows a tag, so white space at its beginning is layout.
    void after_tag() {
        content_begun_ = false;
        trims_content_ = true;
        content_space_.clear();
        reasoning_space_.clear();
    }
    void finish() {
        if (calls_ == 0 && (content_begun_ || !trims_content_)) add(Kind::content, content_space_);
        content_space_.clear();
    }

    void start(const std::string& name, const std::string& id) override {
        open_ = static_cast<size_t>(calls_) < max_calls_;
        if (!open_) return;
        content_space_.clear();
        events_.push_back({Kind::call_start, "", calls_++, name, id.empty() ? make_id_() : id});
    }
    void arguments(std::string_view json) override {
        if (open_) add(Kind::call_arguments, json);
    }
    void end() override {
        if (open_) events_.push_back({Kind::call_end, "", calls_ - 1, "", ""});
        open_ = false;
        after_tag();
    }

    std::vector<OutputEvent> take() { return std::exchange(events_, {}); }
    int calls() const { return calls_; }
    bool content_begun() const { return content_begun_; }

private:
    bool trims_start(Kind kind) const { return kind == Kind::reasoning || trims_content_; }
    void add(Kind kind, std::string_view piece) {
        if (piece.empty()) return;
        const int call = kind == Kind::call_arguments ? calls_ - 1 : 0;
        if (events_.empty() || events_.back().kind != kind)
            events_.push_back({kind, "", call, "", ""});
        events_.back().text += piece;
    }

    std::function<std::string()> make_id_;
    size_t max_calls_;
    std::vector<OutputEvent> events_;
    std::string content_space_, reasoning_space_;
    bool content_begun_ = false, reasoning_begun_ = false, trims_content_ = false, open_ = false;
    int calls_ = 0;
};

}  // namespace

struct OutputParser::State {
    explicit State(OutputParserOptions o)
        : options(std::move(o)),
          types(options.tools),
          out(options.make_id ? options.make_id : make_call_id, options.max_calls),
          reasoning(options.starts_in_reasoning),
          root(options.syntax.harmony ? read_channels() : read_answer()) {
        root.start(feed);
    }

    // ---- answers with tags

    enum class TagKind { open, close, opener, hidden };
    struct Tag {
        TagKind kind;
        Section section = nullptr;
    };

    void add_tag(std::vector<std::string>& texts, std::vector<Tag>& kinds, const std::string& text,
                 Tag tag) {
        if (text.empty()) return;
        texts.push_back(text);
        kinds.push_back(tag);
    }
    void make_tags() {
        std::vector<std::string> thinking, answering;
        const OutputSyntax& s = options.syntax;
        add_tag(answering, content_kinds, s.think_open, {TagKind::open});
        // A closing tag without its opening one is no text either.
        add_tag(answering, content_kinds, s.think_close, {TagKind::close});
        add_tag(thinking, thinking_kinds, s.think_close, {TagKind::close});
        if (s.tools)
            for (const ToolFormat::Opener& o : s.tools->openers) {
                const Tag tag{TagKind::opener, o.section ? o.section : s.tools->section};
                add_tag(answering, content_kinds, o.text, tag);
                if (s.tools_in_reasoning) add_tag(thinking, thinking_kinds, o.text, tag);
            }
        for (const std::string& h : s.hidden) {
            add_tag(answering, content_kinds, h, {TagKind::hidden});
            add_tag(thinking, thinking_kinds, h, {TagKind::hidden});
        }
        content_tags = TagSet(answering);
        thinking_tags = TagSet(thinking);
    }

    Parse<void> read_answer() {
        make_tags();
        const TextSink thought = [this](std::string_view s) { out.text(Kind::reasoning, s); };
        const TextSink said = [this](std::string_view s) { out.text(Kind::content, s); };
        if (!reasoning) co_await try_bare();
        for (;;) {
            int found = -1;
            if (reasoning)
                found = co_await copy_until(feed, thinking_tags, thought);
            else
                found = co_await copy_until(feed, content_tags, said);
            if (found < 0) break;
            const auto index = static_cast<size_t>(found);
            const Tag tag = reasoning ? thinking_kinds[index] : content_kinds[index];
            const std::string text = reasoning ? thinking_tags[index] : content_tags[index];
            if (tag.kind == TagKind::open && !out.content_begun()) {
                reasoning = true;
                out.after_tag();
            } else if (tag.kind == TagKind::open) {
                said(text);  // a tag that is written about
            } else if (tag.kind == TagKind::close && reasoning) {
                reasoning = false;
                out.after_tag();
                co_await try_bare();
            } else if (tag.kind == TagKind::close) {
                said(text);
            } else if (tag.kind == TagKind::opener) {
                co_await try_section(tag.section, feed.position() - text.size());
            }
        }
        out.finish();
    }

    // A section that begins without an opener, at the beginning of the answer.
    Parse<void> try_bare() {
        if (!options.syntax.tools || !options.syntax.tools->bare) co_return;
        const size_t start = feed.position();
        const int c = co_await skip_space(feed);
        const bool may_be = c == options.syntax.tools->bare;
        if (may_be) {
            co_await try_section(options.syntax.tools->section, start);
        } else {
            feed.rewind(start);
        }
    }

    // Runs a section; if it turns out to be none, its text since `begin` is content.
    Parse<void> try_section(Section section, size_t begin) {
        const int before = out.calls();
        bool failed = false;
        try {
            co_await section(feed, out, types);
        } catch (const Unparsable&) {
            failed = true;
        }
        // A bare list or object that is no call may have been read far: everything since `begin`
        // is text then. After a call, what did not fit the format is dropped.
        if (failed && out.calls() == before)
            out.text(reasoning ? Kind::reasoning : Kind::content, feed.since(begin));
        else
            out.after_tag();
    }

    // ---- channels (harmony)

    Parse<void> read_channels() {
        static const TagSet marks({"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>",
                                   "<|end|>", "<|return|>", "<|call|>"});
        enum { start, channel, message };
        reasoning = false;
        for (;;) {
            // Head: role, channel and recipient up to <|message|>.
            const size_t begin = feed.position();
            std::string head;
            const TextSink keep = [&](std::string_view s) { head += s; };
            int mark = -1;
            for (;;) {
                mark = co_await copy_until(feed, marks, keep);
                if (mark != start && mark != channel && mark != 3) break;
                head += mark == channel ? " channel=" : " ";
            }
            if (mark != message) {
                // An answer without any head is just text.
                if (begin == 0 && head.find("channel=") == std::string::npos && mark < 0)
                    out.text(Kind::content, feed.since(begin));
                if (mark < 0) break;
                continue;
            }
            const size_t at = head.find("channel=");
            const std::string name = at == std::string::npos ? "" : word_at(head, at + 8);
            const size_t to = head.find("to=");
            std::string recipient = to == std::string::npos ? "" : word_at(head, to + 3);
            if (recipient.starts_with("functions.")) recipient.erase(0, 10);
            out.after_tag();
            if (!recipient.empty() && recipient != "assistant" && recipient != "all") {
                co_await read_channel_call(recipient);
            } else {
                reasoning = name == "analysis";
                const Kind kind = reasoning ? Kind::reasoning : Kind::content;
                const TextSink pass = [this, kind](std::string_view s) { out.text(kind, s); };
                const int end = co_await copy_until(feed, marks, pass);
                reasoning = false;
                if (end < 0) break;
                if (end == channel) feed.rewind(feed.position() - marks[channel].size());
            }
        }
        out.finish();
    }

    static std::string word_at(const std::string& text, size_t at) {
        const size_t end = text.find_first_of(" \t\n<", at);
        return text.substr(at, end == std::string::npos ? end : end - at);
    }

    Parse<void> read_channel_call(const std::string& name) {
        static const TagSet ends({"<|end|>", "<|call|>", "<|return|>", "<|start|>"});
        const int c = co_await skip_space(feed);
        const std::string no_id;
        const TextSink drop = [](std::string_view) {};
        if (c == '{') {
            co_await read_call_arguments(feed, out, name, no_id);
            co_await copy_until(feed, ends, drop);
            co_return;
        }
        // Built-in tools take plain text.
        std::string text;
        const TextSink keep = [&](std::string_view s) { text += s; };
        co_await copy_until(feed, ends, keep);
        out.start(name, no_id);
        out.arguments(text.empty() ? "{}" : "{\"input\": " + quote(text) + "}");
        out.end();
    }

    OutputParserOptions options;
    ArgumentTypes types;
    TextFeed feed;
    Collector out;
    bool reasoning;
    TagSet content_tags, thinking_tags;
    std::vector<Tag> content_kinds, thinking_kinds;
    Parse<void> root;
};

OutputParser::OutputParser(OutputParserOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;

std::vector<OutputEvent> OutputParser::push(std::string_view text) {
    state_->feed.push(text);
    return state_->out.take();
}

std::vector<OutputEvent> OutputParser::finish() {
    state_->feed.finish();
    EXL3_CHECK(state_->root.done());
    state_->root.rethrow();
    return state_->out.take();
}

int OutputParser::calls() const {
    return state_->out.calls();
}

bool OutputParser::in_reasoning() const {
    return state_->reasoning;
}

std::string make_id(std::string_view prefix) {
    static std::mutex mutex;
    static std::mt19937_64 random{std::random_device{}()};
    const std::lock_guard lock(mutex);
    const uint64_t high = random();
    return fmt::format("{}{:016x}{:08x}", prefix, high, random() & 0xffffffffu);
}

std::string make_call_id() {
    return make_id("call_");
}

bool ends_in_reasoning(std::string_view prompt, const OutputSyntax& syntax) {
    constexpr size_t kLongestTail = 256;
    if (syntax.harmony || syntax.think_open.empty()) return false;
    const size_t open = prompt.rfind(syntax.think_open);
    if (open == std::string_view::npos) return false;
    const size_t close = prompt.rfind(syntax.think_close);
    if (close != std::string_view::npos && close > open) return false;
    const std::string_view tail = prompt.substr(open + syntax.think_open.size());
    return tail.size() <= kLongestTail && tail.find('<') == std::string_view::npos;
}

}  // namespace exl3::api
