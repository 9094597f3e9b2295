// Tool calls between tags: a name, then arguments as JSON or as tagged values.
#include <algorithm>

#include "api/fields.h"
#include "api/tool_format.h"

namespace exl3::api {
namespace {

constexpr int kEnd = TextFeed::kEnd;
constexpr size_t kLongestName = 256;

void trim(std::string& text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) {
        text.clear();
        return;
    }
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    text.erase(0, first);
}

// A function name: no white space inside, not too long.
std::string checked_name(std::string name) {
    trim(name);
    if (name.empty() || name.size() > kLongestName ||
        name.find_first_of(" \t\r\n{}\"<") != std::string::npos)
        throw Unparsable{};
    return name;
}

struct Until {
    std::string text;
    int tag = -1;
};
Parse<Until> read_until(TextFeed& in, const TagSet& tags) {
    Until u;
    const TextSink keep = [&](std::string_view s) { u.text += s; };
    u.tag = co_await copy_until(in, tags, keep);
    co_return u;
}

// Collects the members of an arguments object that arrive one by one.
class Members {
public:
    Members(CallSink& out, const ArgumentTypes& types, std::string name)
        : out_(out), types_(types), name_(std::move(name)) {
        out_.start(name_, "");
        out_.arguments("{");
    }
    void add(const std::string& key, const std::string& text) {
        add_json(key, types_.value(name_, key, text));
    }
    void add_json(const std::string& key, const std::string& json) {
        out_.arguments((first_ ? "" : ", ") + quote(key) + ": " + json);
        first_ = false;
    }
    void end() {
        out_.arguments("}");
        out_.end();
    }

private:
    CallSink& out_;
    const ArgumentTypes& types_;
    std::string name_;
    bool first_ = true;
};

// One line end on each side of a value belongs to the format.
std::string unwrap(std::string value) {
    if (value.starts_with('\n')) value.erase(0, 1);
    if (value.ends_with('\n')) value.pop_back();
    return value;
}

// NAME><parameter=KEY>VALUE</parameter>...</function>, after "<function=".
Parse<void> read_function_tag(TextFeed& in, CallSink& out, const ArgumentTypes& types) {
    static const TagSet head({">"});
    static const TagSet next({"<parameter=", "</function>", "</tool_call>"});
    static const TagSet value_end({"</parameter>", "\n<parameter=", "</function>"});
    const Until name = co_await read_until(in, head);
    if (name.tag < 0) throw Unparsable{};
    Members members(out, types, checked_name(name.text));
    bool at_key = false;  // a value that lacks its end tag stops where the next key begins
    for (;;) {
        if (!at_key) {
            const Until gap = co_await read_until(in, next);
            if (gap.tag != 0) break;
        }
        at_key = false;
        Until key = co_await read_until(in, head);
        if (key.tag < 0) break;
        const Until value = co_await read_until(in, value_end);
        if (value.tag < 0) break;
        trim(key.text);
        members.add(key.text, unwrap(value.text));
        if (value.tag == 2) break;
        at_key = value.tag == 1;
    }
    members.end();
}

// NAME<arg_key>K</arg_key><arg_value>V</arg_value>..., with the tags of one vendor.
struct PairTags {
    TagSet name_end;  // key tag, then closing tags
    TagSet key_end, value_begin, value_end;
};
Parse<void> read_pairs(TextFeed& in, CallSink& out, const ArgumentTypes& types,
                       const PairTags& tags) {
    const Until name = co_await read_until(in, tags.name_end);
    if (name.tag < 0) throw Unparsable{};
    Members members(out, types, checked_name(name.text));
    for (int tag = name.tag; tag == 0;) {
        Until key = co_await read_until(in, tags.key_end);
        const Until gap = co_await read_until(in, tags.value_begin);
        const Until value = co_await read_until(in, tags.value_end);
        if (key.tag < 0 || gap.tag < 0 || value.tag < 0) break;
        trim(key.text);
        members.add(key.text, value.text);
        const Until rest = co_await read_until(in, tags.name_end);
        tag = rest.tag;
    }
    members.end();
}

std::string attribute(const std::string& tag, const std::string& name) {
    const size_t at = tag.find(name + "=\"");
    if (at == std::string::npos) return {};
    const size_t begin = at + name.size() + 2;
    return tag.substr(begin, tag.find('"', begin) - begin);
}

// <invoke name="N"><parameter name="K">V</parameter></invoke>, with a prefix before the words.
struct InvokeTags {
    TagSet next_call;   // invoke, end of section
    TagSet next_value;  // parameter, end of invoke
    TagSet value_end;
};
InvokeTags invoke_tags(const std::string& prefix, std::vector<std::string> section_ends) {
    std::vector<std::string> calls = {"<" + prefix + "invoke"};
    calls.insert(calls.end(), section_ends.begin(), section_ends.end());
    return {TagSet(calls), TagSet({"<" + prefix + "parameter", "</" + prefix + "invoke>"}),
            TagSet({"</" + prefix + "parameter>"})};
}
Parse<void> read_invokes(TextFeed& in, CallSink& out, const ArgumentTypes& types,
                         const InvokeTags& tags) {
    static const TagSet head({">"});
    for (bool first = true;; first = false) {
        const Until gap = co_await read_until(in, tags.next_call);
        if (gap.tag != 0) {
            if (first) throw Unparsable{};
            co_return;
        }
        const Until call = co_await read_until(in, head);
        if (call.tag < 0) {
            if (first) throw Unparsable{};
            co_return;
        }
        Members members(out, types, checked_name(attribute(call.text, "name")));
        for (;;) {
            const Until next = co_await read_until(in, tags.next_value);
            if (next.tag != 0) break;
            const Until open = co_await read_until(in, head);
            const Until value = co_await read_until(in, tags.value_end);
            if (open.tag < 0 || value.tag < 0) break;
            const std::string key = attribute(open.text, "name");
            if (attribute(open.text, "string") == "true")
                members.add_json(key, quote(value.text));
            else
                members.add(key, value.text);
        }
        members.end();
    }
}

}  // namespace

// After "<tool_call>": JSON (Hermes, Qwen), a function tag (Qwen3-Coder) or key and value tags
// (GLM); the next byte tells them apart.
Parse<void> tool_call_section(TextFeed& in, CallSink& out, const ArgumentTypes& types) {
    static const TagSet closer({"</tool_call>"});
    static const PairTags glm = {TagSet({"<arg_key>", "</tool_call>"}), TagSet({"</arg_key>"}),
                                 TagSet({"<arg_value>"}), TagSet({"</arg_value>"})};
    const int c = co_await skip_space(in);
    if (c == kEnd) throw Unparsable{};
    if (c == '<') {
        co_await expect(in, "<function=");
        co_await read_function_tag(in, out, types);
    } else if (c == '{' || c == '[') {
        co_await json_section(in, out, types);
        co_return;
    } else {
        co_await read_pairs(in, out, types, glm);
        co_return;
    }
    const int next = co_await skip_space(in);
    if (closer.may_begin(next)) co_await match_tag(in, closer);
}

// After "<function=", where the outer tag was left out.
Parse<void> bare_function_section(TextFeed& in, CallSink& out, const ArgumentTypes& types) {
    static const TagSet closer({"</tool_call>"});
    co_await read_function_tag(in, out, types);
    const int next = co_await skip_space(in);
    if (closer.may_begin(next)) co_await match_tag(in, closer);
}

Parse<void> minimax_section(TextFeed& in, CallSink& out, const ArgumentTypes& types) {
    static const InvokeTags tags = invoke_tags("", {"</minimax:tool_call>"});
    co_await read_invokes(in, out, types, tags);
}

Parse<void> dsml_section(TextFeed& in, CallSink& out, const ArgumentTypes& types) {
    static const InvokeTags tags =
        invoke_tags("｜DSML｜", {"</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"});
    co_await read_invokes(in, out, types, tags);
}

Parse<void> hunyuan_section(TextFeed& in, CallSink& out, const ArgumentTypes& types) {
    static const TagSet next({"<tool_call:opensource>", "</tool_calls:opensource>"});
    static const PairTags tags = {TagSet({"<arg_key:opensource>", "</tool_call:opensource>"}),
                                  TagSet({"</arg_key:opensource>"}),
                                  TagSet({"<arg_value:opensource>"}),
                                  TagSet({"</arg_value:opensource>"})};
    static const TagSet separator({"<tool_sep:opensource>"});
    for (bool first = true;; first = false) {
        const Until gap = co_await read_until(in, next);
        if (gap.tag != 0) {
            if (first) throw Unparsable{};
            co_return;
        }
        const Until name = co_await read_until(in, separator);
        if (name.tag < 0) throw Unparsable{};
        Members members(out, types, checked_name(name.text));
        for (;;) {
            const Until pair = co_await read_until(in, tags.name_end);
            if (pair.tag != 0) break;
            Until key = co_await read_until(in, tags.key_end);
            co_await read_until(in, tags.value_begin);
            const Until value = co_await read_until(in, tags.value_end);
            if (value.tag < 0) break;
            trim(key.text);
            members.add(key.text, value.text);
        }
        members.end();
    }
}

// After "[TOOL_CALLS]": a list of objects, or NAME[CALL_ID]ID[ARGS]{...}, repeated.
Parse<void> mistral_section(TextFeed& in, CallSink& out, const ArgumentTypes& types) {
    static const TagSet head({"[CALL_ID]", "[ARGS]"});
    static const TagSet opener({"[TOOL_CALLS]"});
    const int c = co_await skip_space(in);
    if (c == '[' || c == '{') {
        co_await json_section(in, out, types);
        co_return;
    }
    for (;;) {
        std::string name, id;
        for (int b = co_await skip_space(in); b != '{' && b != kEnd; b = co_await in.peek()) {
            if (head.may_begin(b)) {
                const int tag = co_await match_tag(in, head);
                if (tag == 0) {
                    const Until u = co_await read_until(in, head);
                    id = u.text;
                    break;
                }
                if (tag == 1) break;
            }
            name += static_cast<char>(b);
            in.skip();
            if (name.size() > kLongestName) throw Unparsable{};
        }
        trim(id);
        name = checked_name(name);
        co_await read_call_arguments(in, out, name, id);
        const int next = co_await skip_space(in);
        if (!opener.may_begin(next)) co_return;
        const int more = co_await match_tag(in, opener);
        if (more < 0) co_return;
    }
}

// function<sep>NAME, a fenced block with JSON (V3, R1), or NAME<sep>{...} (V3.1).
Parse<void> deepseek_section(TextFeed& in, CallSink& out, const ArgumentTypes&) {
    static const TagSet next({"<｜tool▁call▁begin｜>", "<｜tool▁calls▁end｜>"});
    static const TagSet separator({"<｜tool▁sep｜>"});
    static const TagSet call_end({"<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"});
    static const TagSet line_end({"\n"});
    // The opener may have been that of the first call itself.
    for (bool first = true;; first = false) {
        const int c = co_await skip_space(in);
        if (c == kEnd && !first) co_return;
        if (next.may_begin(c)) {
            const int tag = co_await match_tag(in, next);
            if (tag == 1 && !first) co_return;
        } else if (!first) {
            co_return;
        }
        const Until head = co_await read_until(in, separator);
        if (head.tag < 0) throw Unparsable{};
        std::string name = head.text;
        const int after = co_await in.peek();
        if (after != '{') {
            const Until line = co_await read_until(in, line_end);
            name = line.text;
            const int fence = co_await skip_space(in);
            if (fence == '`') co_await read_until(in, line_end);
        }
        name = checked_name(name);
        const std::string no_id;
        co_await read_call_arguments(in, out, name, no_id);
        const Until end = co_await read_until(in, call_end);
        if (end.tag != 0) co_return;
    }
}

// functions.NAME:INDEX<|tool_call_argument_begin|>{...}; all of the head is the id of the call.
Parse<void> kimi_section(TextFeed& in, CallSink& out, const ArgumentTypes&) {
    static const TagSet next({"<|tool_call_begin|>", "<|tool_calls_section_end|>"});
    static const TagSet separator({"<|tool_call_argument_begin|>"});
    static const TagSet call_end({"<|tool_call_end|>", "<|tool_calls_section_end|>"});
    for (bool first = true;; first = false) {
        const int c = co_await skip_space(in);
        if (next.may_begin(c)) {
            const int tag = co_await match_tag(in, next);
            if (tag == 1 && !first) co_return;
        } else if (!first) {
            co_return;
        }
        Until head = co_await read_until(in, separator);
        if (head.tag < 0) throw Unparsable{};
        trim(head.text);
        std::string name = head.text;
        if (name.starts_with("functions.")) name.erase(0, 10);
        if (const size_t colon = name.rfind(':'); colon != std::string::npos) name.resize(colon);
        name = checked_name(name);
        co_await read_call_arguments(in, out, name, head.text);
        const Until end = co_await read_until(in, call_end);
        if (end.tag != 0) co_return;
    }
}

}  // namespace exl3::api
