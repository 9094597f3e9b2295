// Tool calls as program text: f(a=1, b="x"), and call:f{a:1}.
#include "api/fields.h"
#include "api/tool_format.h"

namespace exl3::api {
namespace {

constexpr int kEnd = TextFeed::kEnd;
constexpr size_t kLongestName = 256;

bool in_name(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '-';
}

Parse<std::string> read_name(TextFeed& in) {
    std::string name;
    for (int c = co_await skip_space(in); in_name(c); c = co_await in.peek()) {
        name += static_cast<char>(c);
        in.skip();
        if (name.size() > kLongestName) throw Unparsable{};
    }
    if (name.empty()) throw Unparsable{};
    co_return name;
}

// a=1, b="x"), after the opening parenthesis.
Parse<void> read_keywords(TextFeed& in, CallSink& out) {
    const TextSink pass = [&](std::string_view s) { out.arguments(s); };
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (c == ',' && !first) {
            in.skip();
            c = co_await skip_space(in);
        }
        if (c == ')') {
            in.skip();
            co_return;
        }
        if (!in_name(c)) co_return;
        const std::string key = co_await read_name(in);
        const int equals = co_await skip_space(in);
        if (equals != '=' && equals != ':') co_return;
        in.skip();
        out.arguments((first ? "" : ", ") + quote(key) + ": ");
        const bool whole = co_await relay_json(in, pass);
        if (!whole) co_return;
    }
}

Parse<void> read_python_call(TextFeed& in, CallSink& out) {
    const std::string name = co_await read_name(in);
    co_await expect(in, "(");
    // f( alone may be prose; a key or the end of the arguments makes it a call.
    const size_t start = in.position();
    const int c = co_await skip_space(in);
    if (c != ')') {
        const std::string key = co_await read_name(in);
        const int equals = co_await skip_space(in);
        if (equals != '=' && equals != ':') throw Unparsable{};
        in.rewind(start);
    }
    out.start(name, "");
    out.arguments("{");
    co_await read_keywords(in, out);
    out.arguments("}");
    out.end();
}

// A value of Gemma: text between <|"|> marks, nested {K:V}, [V], numbers, true, false, null.
Parse<bool> relay_gemma(TextFeed& in, const TextSink& out, int depth);

Parse<bool> relay_gemma_text(TextFeed& in, const TextSink& out) {
    static const TagSet mark({"<|\"|>"});
    std::string text;
    const TextSink keep = [&](std::string_view s) { text += s; };
    const int tag = co_await copy_until(in, mark, keep);
    out(quote(text));
    co_return tag == 0;
}

Parse<bool> relay_gemma_group(TextFeed& in, const TextSink& out, bool object, int depth) {
    static const TagSet mark({"<|\"|>"});
    const int close = object ? '}' : ']';
    out(object ? "{" : "[");
    bool whole = false;
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (c == ',' && !first) {
            in.skip();
            c = co_await skip_space(in);
        }
        if (c == close) {
            in.skip();
            whole = true;
            break;
        }
        if (c == kEnd) break;
        if (!first) out(", ");
        if (object) {
            std::string key;
            const int tag = mark.may_begin(c) ? co_await match_tag(in, mark) : -1;
            if (tag == 0) {
                const TextSink keep = [&](std::string_view s) { key += s; };
                co_await copy_until(in, mark, keep);
            } else {
                for (c = co_await in.peek(); c != ':' && c != kEnd && key.size() < kLongestName;
                     c = co_await in.peek()) {
                    if (c != '"') key += static_cast<char>(c);
                    in.skip();
                }
            }
            const int colon = co_await skip_space(in);
            out(quote(key) + ": ");
            if (colon != ':') {
                out("null");
                break;
            }
            in.skip();
        }
        const bool value = co_await relay_gemma(in, out, depth);
        if (!value) break;
    }
    out(object ? "}" : "]");
    co_return whole;
}

Parse<bool> relay_gemma(TextFeed& in, const TextSink& out, int depth) {
    static const TagSet mark({"<|\"|>"});
    const int c = co_await skip_space(in);
    if (mark.may_begin(c)) {
        const int tag = co_await match_tag(in, mark);
        if (tag == 0) {
            const bool whole = co_await relay_gemma_text(in, out);
            co_return whole;
        }
    }
    if ((c == '{' || c == '[') && depth > 0) {
        in.skip();
        const bool whole = co_await relay_gemma_group(in, out, c == '{', depth - 1);
        co_return whole;
    }
    const bool whole = co_await relay_json(in, out, depth);
    co_return whole;
}

}  // namespace

// [f(a=1), g()] or one call per line, with the closing tag of the section.
Parse<void> pythonic_section(TextFeed& in, CallSink& out, const ArgumentTypes&) {
    static const TagSet closers({"<|python_end|>", "<|tool_call_end|>", "</function_calls>"});
    const int open = co_await skip_space(in);
    const bool list = open == '[';
    if (list) in.skip();
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (c == ',' && !first) {
            in.skip();
            c = co_await skip_space(in);
        }
        if (list && c == ']' && !first) {
            in.skip();
            break;
        }
        if (!first && !in_name(c)) break;
        co_await read_python_call(in, out);
    }
    const int next = co_await skip_space(in);
    if (closers.may_begin(next)) co_await match_tag(in, closers);
}

// call:NAME{...} and the closing tag.
Parse<void> gemma_section(TextFeed& in, CallSink& out, const ArgumentTypes&) {
    static const TagSet closer({"<tool_call|>"});
    co_await skip_space(in);
    co_await expect(in, "call:");
    const std::string name = co_await read_name(in);
    const int c = co_await skip_space(in);
    if (c != '{') throw Unparsable{};
    in.skip();
    out.start(name, "");
    const TextSink pass = [&](std::string_view s) { out.arguments(s); };
    co_await relay_gemma_group(in, pass, true, 100);
    out.end();
    const int next = co_await skip_space(in);
    if (closer.may_begin(next)) co_await match_tag(in, closer);
}

}  // namespace exl3::api
