#include "api/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/fields.h"

namespace exl3::api {
namespace {

[[noreturn]] void refuse_media(const std::string& path, std::string_view what) {
    throw bad_field(path, fmt::format("found {}, needed text: this model takes no {}", what, what));
}

// One element of a content list. Returns the text, or nothing for parts that say nothing.
std::optional<std::string> part_text(const Json& part, const std::string& path) {
    if (part.is_string()) return part.get<std::string>();
    const Fields f(part, path);
    const std::string type = f.text({"type"}).value_or("text");
    if (type == "text" || type == "input_text" || type == "output_text") return f.need_text("text");
    if (type == "refusal") return f.need_text("refusal");
    if (type == "thinking" || type == "reasoning") return {};
    if (type.find("image") != std::string::npos) refuse_media(path, "images");
    if (type.find("audio") != std::string::npos) refuse_media(path, "audio");
    if (type.find("video") != std::string::npos) refuse_media(path, "video");
    if (type.find("file") != std::string::npos) refuse_media(path, "files");
    f.fail("type", fmt::format("found '{}', needed 'text'", type));
}

// Content as text or as a list of {type: text, text}.
Json read_content(const Json& content, const std::string& path) {
    if (content.is_string()) return content;
    if (!content.is_array())
        throw bad_field(
            path, fmt::format("found {}, needed a string or a list of parts", kind_of(content)));
    Json parts = Json::array();
    for (size_t i = 0; i < content.size(); ++i)
        if (auto text = part_text(content[i], fmt::format("{}[{}]", path, i)))
            parts.push_back({{"type", "text"}, {"text", std::move(*text)}});
    if (parts.size() == 1) return std::move(parts[0]["text"]);
    if (parts.empty()) return "";
    return parts;
}

// Arguments are text in the protocol and an object for templates; text that is no JSON stays text.
Json read_arguments(const Json* arguments) {
    if (!arguments || arguments->is_null()) return Json::object();
    if (!arguments->is_string()) return *arguments;
    const std::string text = arguments->get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
    auto parsed = parse_json(text, "arguments");
    if (parsed && parsed->is_object()) return std::move(*parsed);
    return text;
}

Json read_call(const Json& call, const std::string& path) {
    const Fields f(call, path);
    const Json* function = f.object({"function", "custom"});
    if (!function) f.fail("function", "missing, needed an object");
    const Fields inner(*function, path + ".function");
    const Json* arguments = inner.find({"arguments", "input"});
    Json out = {{"id", f.text({"id"}).value_or("")},
                {"type", "function"},
                {"function",
                 {{"name", inner.need_text("name")}, {"arguments", read_arguments(arguments)}}}};
    return out;
}

void read_calls(const Fields& f, Json& out) {
    Json calls = Json::array();
    if (const Json* given = f.array({"tool_calls"}))
        for (size_t i = 0; i < given->size(); ++i)
            calls.push_back(read_call((*given)[i], fmt::format("{}[{}]", f.at("tool_calls"), i)));
    if (const Json* old = f.object({"function_call"}); old && calls.empty()) {
        const Fields inner(*old, f.at("function_call"));
        calls.push_back({{"id", inner.need_text("name")},
                         {"type", "function"},
                         {"function",
                          {{"name", inner.need_text("name")},
                           {"arguments", read_arguments(inner.find({"arguments"}))}}}});
    }
    if (!calls.empty()) out["tool_calls"] = std::move(calls);
}

Json read_message(const Json& message, const std::string& path) {
    const Fields f(message, path);
    Json out = {{"role", f.need_text("role")}};
    if (out["role"] == "function") out["role"] = "tool";
    if (const auto name = f.text({"name"})) out["name"] = *name;
    if (const Json* content = f.find({"content"}))
        out["content"] = read_content(*content, f.at("content"));
    if (out["role"] == "assistant") {
        if (const auto refusal = f.text({"refusal"}); refusal && !out.contains("content"))
            out["content"] = *refusal;
        read_calls(f, out);
        if (const auto thought = f.text({"reasoning_content", "reasoning", "thinking"}))
            for (const char* key : {"reasoning_content", "reasoning", "thinking"})
                out[key] = *thought;
        // Null is how templates see that calls stand alone.
        if (!out.contains("content"))
            out["content"] = out.contains("tool_calls") ? Json() : Json("");
    }
    if (out["role"] == "tool") {
        out["tool_call_id"] = f.text({"tool_call_id", "name"}).value_or("");
    }
    if (!out.contains("content") && !out.contains("tool_calls")) {
        if (out["role"] != "tool") f.fail("content", "missing, needed a string or a list of parts");
        out["content"] = "";
    }
    return out;
}

// Puts runs of tool results into the order in which the calls were made.
void sort_results(Json& messages) {
    std::map<std::string, size_t> order;
    for (size_t i = 0; i < messages.size();) {
        if (messages[i].contains("tool_calls")) {
            order.clear();
            for (const Json& call : messages[i]["tool_calls"])
                order.emplace(call["id"].get<std::string>(), order.size());
        }
        size_t end = i;
        while (end < messages.size() && messages[end]["role"] == "tool") ++end;
        const auto place = [&](const Json& m) {
            const auto it = order.find(m["tool_call_id"].get<std::string>());
            return it == order.end() ? order.size() : it->second;
        };
        const auto begin = messages.begin();
        std::stable_sort(begin + static_cast<ptrdiff_t>(i), begin + static_cast<ptrdiff_t>(end),
                         [&](const Json& a, const Json& b) { return place(a) < place(b); });
        i = std::max(end, i + 1);
    }
}

ToolSpec read_tool(const Fields& f, const Json& function, const std::string& path) {
    const Fields inner(function, path);
    ToolSpec t{.name = inner.need_text("name"),
               .description = inner.text({"description"}).value_or("")};
    const Json* schema = inner.object({"parameters", "input_schema"});
    if (schema && !schema->empty())
        t.parameters = *schema;
    else
        t.parameters = {{"type", "object"}, {"properties", Json::object()}};
    t.strict = inner.flag({"strict"}).value_or(f.flag({"strict"}).value_or(false));
    return t;
}

ToolSpec read_custom(const Json& custom, const std::string& path) {
    const Fields inner(custom, path);
    ToolSpec t{.name = inner.need_text("name"),
               .description = inner.text({"description"}).value_or("")};
    t.custom = true;
    t.parameters = {{"type", "object"},
                    {"properties", {{"input", {{"type", "string"}}}}},
                    {"required", {"input"}}};
    return t;
}

void keep_named(std::vector<ToolSpec>& tools, const Json& allowed) {
    std::vector<std::string> names;
    for (const Json& item : allowed) {
        const Json* holder = &item;
        if (item.is_object() && item.contains("function")) holder = &item.at("function");
        if (holder->is_object() && holder->contains("name") && holder->at("name").is_string())
            names.push_back(holder->at("name").get<std::string>());
    }
    std::erase_if(tools, [&](const ToolSpec& t) {
        return std::find(names.begin(), names.end(), t.name) == names.end();
    });
}

void choose_by_word(const std::string& word, const std::string& path, ToolChoice& choice) {
    if (word == "none")
        choice.mode = ToolChoice::Mode::none;
    else if (word == "auto")
        choice.mode = ToolChoice::Mode::automatic;
    else if (word == "required" || word == "any")
        choice.mode = ToolChoice::Mode::required;
    else
        throw bad_field(path,
                        fmt::format("found '{}', needed none, auto, required or a function", word));
}

}  // namespace

std::string content_text(const Json& content) {
    if (content.is_string()) return content.get<std::string>();
    std::string text;
    if (content.is_array())
        for (const Json& part : content) {
            if (!text.empty()) text += '\n';
            text += part.at("text").get<std::string>();
        }
    return text;
}

Json read_chat_messages(const Json& messages, const std::string& path) {
    if (messages.empty()) throw bad_field(path, "found an empty list, needed at least one message");
    Json out = Json::array();
    for (size_t i = 0; i < messages.size(); ++i)
        out.push_back(read_message(messages[i], fmt::format("{}[{}]", path, i)));
    sort_results(out);
    return out;
}

std::vector<ToolSpec> read_tools(const Json& tools, const std::string& path) {
    std::vector<ToolSpec> all;
    for (size_t i = 0; i < tools.size(); ++i) {
        const std::string at = fmt::format("{}[{}]", path, i);
        const Fields f(tools[i], at);
        const std::string type = f.text({"type"}).value_or("function");
        if (type == "function") {
            const Json* function = f.object({"function"});
            all.push_back(
                read_tool(f, function ? *function : tools[i], function ? at + ".function" : at));
        } else if (type == "custom") {
            const Json* custom = f.object({"custom"});
            all.push_back(read_custom(custom ? *custom : tools[i], custom ? at + ".custom" : at));
        }
    }
    return all;
}

Json template_tools(const std::vector<ToolSpec>& tools) {
    Json all = Json::array();
    for (const ToolSpec& t : tools)
        all.push_back(
            {{"type", "function"},
             {"function",
              {{"name", t.name}, {"description", t.description}, {"parameters", t.parameters}}}});
    return all;
}

ToolChoice read_tool_choice(const Json& request, std::vector<ToolSpec>& tools) {
    const Fields f(request, "");
    ToolChoice choice;
    choice.parallel = f.flag({"parallel_tool_calls"}).value_or(true);
    const Json* value = f.find({"tool_choice", "function_call"});
    if (value && value->is_string()) {
        choose_by_word(value->get<std::string>(), "tool_choice", choice);
    } else if (value) {
        const Fields c(*value, "tool_choice");
        const std::string type = c.text({"type"}).value_or("function");
        if (type == "function" || type == "custom" || type == "tool") {
            const Json* inner = c.object({"function", "custom"});
            choice.mode = ToolChoice::Mode::required;
            choice.name = Fields(inner ? *inner : *value, "tool_choice").need_text("name");
        } else if (type == "allowed_tools") {
            const Json* inner = c.object({"allowed_tools"});
            const Fields allowed(inner ? *inner : *value, "tool_choice.allowed_tools");
            choose_by_word(allowed.text({"mode"}).value_or("auto"), "tool_choice.mode", choice);
            keep_named(tools, allowed.need_array("tools"));
        } else {
            choose_by_word(type, "tool_choice.type", choice);
            if (c.flag({"disable_parallel_tool_use"}).value_or(false)) choice.parallel = false;
        }
    }
    if (!choice.name.empty() && std::none_of(tools.begin(), tools.end(), [&](const ToolSpec& t) {
            return t.name == choice.name;
        }))
        throw bad_field(
            "tool_choice",
            fmt::format("found '{}', needed the name of one of the tools", choice.name));
    if (tools.empty()) {
        if (choice.mode == ToolChoice::Mode::required)
            throw bad_field("tool_choice", "found 'required', needed at least one tool to call");
        choice.mode = ToolChoice::Mode::none;
    }
    return choice;
}

void add_template_vars(const Json& request, const RequestDefaults& defaults, Json& chat) {
    const Fields f(request, "");
    const auto merge = [&](const Json& vars) {
        for (const auto& [key, value] : vars.items())
            if (key != "messages" && key != "tools") chat[key] = value;
    };
    merge(defaults.template_vars);
    auto effort = f.text({"reasoning_effort"});
    auto enabled = f.flag({"enable_thinking"});
    if (const Json* reasoning = f.object({"reasoning"})) {
        const Fields r(*reasoning, "reasoning");
        if (!effort) effort = r.text({"effort"});
        if (!enabled) enabled = r.flag({"enabled"});
    }
    if (const Json* thinking = f.object({"thinking"}); thinking && !enabled)
        enabled = Fields(*thinking, "thinking").text({"type"}).value_or("enabled") != "disabled";
    if (effort) {
        chat["reasoning_effort"] = *effort;
        if (!enabled) enabled = *effort != "none";
    }
    if (enabled) {
        chat["enable_thinking"] = *enabled;
        chat["thinking"] = *enabled;
    }
    if (const auto verbosity = f.text({"verbosity"})) chat["verbosity"] = *verbosity;
    if (const Json* documents = f.array({"documents"})) chat["documents"] = *documents;
    if (const Json* vars = f.object({"chat_template_kwargs", "template_vars"})) merge(*vars);
    merge(defaults.template_vars_forced);
}

}  // namespace exl3::api
