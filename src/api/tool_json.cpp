// Tool calls as JSON: objects that name a function, alone, in lists, in tags.
#include <algorithm>

#include "api/fields.h"
#include "api/tool_format.h"

namespace exl3::api {
namespace {

constexpr int kEnd = TextFeed::kEnd;

bool is_quote(int c) {
    return c == '"' || c == '\'';
}

bool one_of(const std::string& key, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), key) != names.end();
}

// What a call object has said so far.
struct CallParts {
    std::string name, id, arguments;
    bool started = false, has_arguments = false;
};

Parse<std::string> read_key(TextFeed& in) {
    std::string key = co_await read_string(in);
    const int colon = co_await skip_space(in);
    if (colon != ':') throw Unparsable{};
    in.skip();
    co_await skip_space(in);
    co_return key;
}

// Arguments written as a string that holds JSON are unpacked.
std::string unpack(const std::string& text) {
    auto inner = parse_json(text, "arguments");
    if (inner && inner->is_object()) return text;
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "{}";
    return quote(text);
}

Parse<void> read_members(TextFeed& in, CallSink& out, CallParts& call);

Parse<void> read_arguments_member(TextFeed& in, CallSink& out, CallParts& call) {
    call.has_arguments = true;
    const int c = co_await in.peek();
    if (is_quote(c)) {
        const std::string text = co_await read_string(in);
        call.arguments = unpack(text);
    } else if (call.name.empty()) {
        const TextSink keep = [&](std::string_view s) { call.arguments += s; };
        const bool whole = co_await relay_json(in, keep);
        if (!whole) throw Unparsable{};
    } else if (c == 'n' || c == 'N') {
        const TextSink drop = [](std::string_view) {};
        co_await relay_json(in, drop);
        call.arguments = "{}";
    } else {
        out.start(call.name, call.id);
        call.started = true;
        const TextSink pass = [&](std::string_view s) { out.arguments(s); };
        co_await relay_json(in, pass);
    }
}

Parse<void> read_member(TextFeed& in, CallSink& out, CallParts& call) {
    const std::string key = co_await read_key(in);
    const int c = co_await in.peek();
    if (is_quote(c) && one_of(key, {"name", "tool_name", "function", "tool", "function_name"})) {
        call.name = co_await read_string(in);
    } else if (is_quote(c) && one_of(key, {"id", "call_id", "tool_call_id"})) {
        call.id = co_await read_string(in);
    } else if (c == '{' && one_of(key, {"function", "function_call", "tool_call"})) {
        in.skip();
        co_await read_members(in, out, call);
    } else if (one_of(key, {"arguments", "parameters", "args", "input", "action_input"})) {
        co_await read_arguments_member(in, out, call);
    } else {
        const TextSink drop = [](std::string_view) {};
        const bool whole = co_await relay_json(in, drop);
        if (!whole) throw Unparsable{};
    }
}

// Members up to and including the closing brace. Once the call has started, the text may break off
// anywhere.
Parse<void> read_members(TextFeed& in, CallSink& out, CallParts& call) {
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (c == ',' && !first) {
            in.skip();
            c = co_await skip_space(in);
        }
        if (c == '}') {
            in.skip();
            co_return;
        }
        if (!is_quote(c)) {
            if (call.started) co_return;
            throw Unparsable{};
        }
        co_await read_member(in, out, call);
    }
}

Parse<void> read_list(TextFeed& in, CallSink& out, bool bare) {
    co_await expect(in, "[");
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (c == ',' && !first) {
            in.skip();
            c = co_await skip_space(in);
        }
        if (c == ']') {
            in.skip();
            co_return;
        }
        if (c != '{') {
            if (!first) co_return;
            throw Unparsable{};
        }
        co_await read_call_object(in, out, bare);
    }
}

}  // namespace

Parse<void> read_call_object(TextFeed& in, CallSink& out, bool bare) {
    co_await expect(in, "{");
    CallParts call;
    bool broken = false;
    try {
        co_await read_members(in, out, call);
    } catch (const Unparsable&) {
        if (!call.started) throw;
        broken = true;
    }
    if (!call.started) {
        if (broken || call.name.empty() || (bare && !call.has_arguments)) throw Unparsable{};
        out.start(call.name, call.id);
        out.arguments(call.has_arguments ? call.arguments : "{}");
    }
    out.end();
}

Parse<void> read_call_arguments(TextFeed& in, CallSink& out, const std::string& name,
                                const std::string& id) {
    const int c = co_await skip_space(in);
    if (c != '{') throw Unparsable{};
    out.start(name, id);
    const TextSink pass = [&](std::string_view s) { out.arguments(s); };
    co_await relay_json(in, pass);
    out.end();
}

// An object or a list of them, and the tag that closes the section if there is one.
Parse<void> json_section(TextFeed& in, CallSink& out, const ArgumentTypes&) {
    static const TagSet closers({"<|END_ACTION|>", "</tool_calls>", "</tool_call>",
                                 "<|action_end|>", "</TOOLCALL>", "<|/tool_call|>"});
    const int c = co_await skip_space(in);
    if (c == '[')
        co_await read_list(in, out, false);
    else
        co_await read_call_object(in, out, false);
    const int next = co_await skip_space(in);
    if (closers.may_begin(next)) co_await match_tag(in, closers);
}

// Objects without any tag, to the end of the answer: {"name": ...}; {"name": ...}
Parse<void> bare_json_section(TextFeed& in, CallSink& out, const ArgumentTypes&) {
    static const TagSet between(
        {";", ",", "</tool_call>", "<tool_call>", "<|python_tag|>", "<|eom_id|>", "<|eot_id|>"});
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (!first && between.may_begin(c)) {
            const int tag = co_await match_tag(in, between);
            if (tag < 0) co_return;
            c = co_await skip_space(in);
        }
        if (c == kEnd && !first) co_return;
        if (c == '[')
            co_await read_list(in, out, true);
        else
            co_await read_call_object(in, out, true);
    }
}

}  // namespace exl3::api
