#include "api/tool_format.h"

#include <algorithm>
#include <array>

#include "api/fields.h"

namespace exl3::api {
namespace {

// More specific marks first: the first row that fits is taken.
const std::vector<ToolFormat>& formats() {
    static const std::vector<ToolFormat> all = {
        {"deepseek_v4",
         {{"<｜DSML｜tool_calls>"}, {"<｜DSML｜function_calls>"}},
         0,
         dsml_section,
         {"｜DSML｜"}},
        {"deepseek_v3",
         {{"<｜tool▁calls▁begin｜>"}, {"<｜tool▁call▁begin｜>"}},
         0,
         deepseek_section,
         {"<｜tool▁call▁begin｜>"}},
        {"kimi_k2",
         {{"<|tool_calls_section_begin|>"}, {"<|tool_call_begin|>"}},
         0,
         kimi_section,
         {"<|tool_call_begin|>"}},
        {"minimax_m2", {{"<minimax:tool_call>"}}, 0, minimax_section, {"<minimax:tool_call>"}},
        {"hy3", {{"<tool_calls:opensource>"}}, 0, hunyuan_section, {":opensource>"}},
        {"gemma4", {{"<|tool_call>"}}, 0, gemma_section, {"<|tool_call>"}},
        {"qwen3_coder",
         {{"<tool_call>"}, {"<function=", bare_function_section}},
         0,
         tool_call_section,
         {"<function="}},
        {"glm4_5", {{"<tool_call>"}}, 0, tool_call_section, {"<arg_key>"}},
        {"mistral", {{"[TOOL_CALLS]"}}, 0, mistral_section, {"[TOOL_CALLS]"}},
        {"command_a", {{"<|START_ACTION|>"}}, 0, json_section, {"<|START_ACTION|>"}},
        {"jamba", {{"<tool_calls>"}}, 0, json_section, {"<tool_calls>"}},
        {"granite", {{"<|tool_call|>"}}, 0, json_section, {"<|tool_call|>"}},
        {"internlm", {{"<|action_start|><|plugin|>"}}, 0, json_section, {"<|action_start|>"}},
        {"nemotron", {{"<TOOLCALL>"}}, 0, json_section, {"<TOOLCALL>"}},
        {"phi4_mini", {{"functools"}}, 0, json_section, {"functools["}},
        {"hermes", {{"<tool_call>"}}, 0, tool_call_section, {"<tool_call>"}},
        {"lfm2", {{"<|tool_call_start|>"}}, 0, pythonic_section, {"<|tool_call_start|>"}},
        {"olmo3", {{"<function_calls>"}}, 0, pythonic_section, {"<function_calls>"}},
        {"llama3_json",
         {{"<|python_tag|>"}},
         '{',
         bare_json_section,
         {"\"name\"", "\"parameters\""}},
        {"pythonic", {{"<|python_start|>"}}, '[', pythonic_section, {"(exl3_probe_key="}},
        {"json", {{"<tool_call>"}}, '{', bare_json_section, {"\"name\"", "\"arguments\""}},
        {"json_list", {{"<tool_call>"}}, '[', bare_json_section, {}},
    };
    return all;
}

struct Alias {
    std::string_view name, means;
};
constexpr std::array kAliases = {
    Alias{"qwen", "hermes"},
    Alias{"qwen2_5", "hermes"},
    Alias{"qwen3", "hermes"},
    Alias{"qwen3_5", "qwen3_coder"},
    Alias{"step3_5", "qwen3_coder"},
    Alias{"step3_7", "qwen3_coder"},
    Alias{"glm4_6", "glm4_5"},
    Alias{"glm4_7", "glm4_5"},
    Alias{"glm5", "glm4_5"},
    Alias{"glm45", "glm4_5"},
    Alias{"laguna", "glm4_5"},
    Alias{"poolside_v1", "glm4_5"},
    Alias{"minimax", "minimax_m2"},
    Alias{"deepseek_v3_1", "deepseek_v3"},
    Alias{"deepseek_v3.1", "deepseek_v3"},
    Alias{"deepseek_r1", "deepseek_v3"},
    Alias{"dsv4", "deepseek_v4"},
    Alias{"deepseek_v3_2", "deepseek_v4"},
    Alias{"mistral_old", "mistral"},
    Alias{"llama3", "llama3_json"},
    Alias{"llama4_pythonic", "pythonic"},
    Alias{"kimi", "kimi_k2"},
    Alias{"xlam", "json_list"},
    Alias{"generic", "json"},
};

}  // namespace

const ToolFormat* find_tool_format(std::string_view name) {
    for (const Alias& a : kAliases)
        if (name == a.name) name = a.means;
    for (const ToolFormat& f : formats())
        if (f.name == name) return &f;
    return nullptr;
}

const ToolFormat* recognize_tool_format(std::string_view call) {
    for (const ToolFormat& f : formats()) {
        const bool fits = std::all_of(f.marks.begin(), f.marks.end(), [&](const std::string& m) {
            return call.find(m) != std::string_view::npos;
        });
        if (!f.marks.empty() && fits) return &f;
    }
    return nullptr;
}

std::vector<std::string_view> tool_format_names() {
    std::vector<std::string_view> names;
    for (const ToolFormat& f : formats()) names.push_back(f.name);
    names.push_back("harmony");
    return names;
}

ArgumentTypes::ArgumentTypes(const std::vector<ToolSpec>& tools) {
    for (const ToolSpec& t : tools)
        if (const auto it = t.parameters.find("properties");
            it != t.parameters.end() && it->is_object())
            schemas_.emplace(t.name, *it);
}

// A schema that allows text, alone or among others, means text: a number that was to be one is
// still readable then, while a text that was turned into a number is lost.
bool ArgumentTypes::is_text(const std::string& tool, const std::string& key) const {
    const auto schema = schemas_.find(tool);
    if (schema == schemas_.end()) return false;
    const auto property = schema->second.find(key);
    if (property == schema->second.end() || !property->is_object()) return false;
    const auto names_string = [](const Json& type) {
        if (type.is_string()) return type == "string";
        return type.is_array() && type.size() == 1 && type[0] == "string";
    };
    if (const auto type = property->find("type"); type != property->end())
        return names_string(*type);
    if (const auto values = property->find("enum"); values != property->end() && values->is_array())
        return std::all_of(values->begin(), values->end(),
                           [](const Json& v) { return v.is_string(); });
    return false;
}

std::string ArgumentTypes::value(const std::string& tool, const std::string& key,
                                 const std::string& text) const {
    if (is_text(tool, key)) return quote(text);
    TextFeed feed;
    feed.push(text);
    std::string json;
    const TextSink keep = [&](std::string_view s) { json += s; };
    // Only what is JSON from beginning to end, in the loose sense of relay_json (True, None).
    const auto whole = [&]() -> Parse<bool> {
        const int first = co_await skip_space(feed);
        if (first == TextFeed::kEnd || first == '\'') co_return false;
        const bool complete = co_await relay_json(feed, keep);
        const int rest = co_await skip_space(feed);
        co_return complete&& rest == TextFeed::kEnd;
    };
    bool is_json = false;
    const auto run = [&]() -> Parse<void> { is_json = co_await whole(); };
    Parse<void> parse = run();
    parse.start(feed);
    feed.finish();
    return is_json ? json : quote(text);
}

}  // namespace exl3::api
