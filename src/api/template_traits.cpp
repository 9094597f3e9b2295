#include "api/template_traits.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/fields.h"

namespace exl3::api {
namespace {

constexpr const char* kQuestion = "exl3 probe question";
constexpr const char* kCall = "exl3_probe_call";
constexpr const char* kTool = "exl3_probe_tool";

constexpr std::array kThinkTags = {
    std::pair{"<think>", "</think>"},
    std::pair{"[THINK]", "[/THINK]"},
    std::pair{"<seed:think>", "</seed:think>"},
    std::pair{"<|START_THINKING|>", "<|END_THINKING|>"},
    std::pair{"◁think▷", "◁/think▷"},
    std::pair{"<thought>", "</thought>"},
    std::pair{"<|inner_prefix|>", "<|inner_suffix|>"},
};

Json user(const Json& content) {
    return {{"role", "user"}, {"content", content}};
}

/// Renders probes with one template; a template that refuses one gives no text.
class Prober {
public:
    Prober(const ChatTemplates& templates, const JinjaTemplate& jinja)
        : templates_(templates), jinja_(jinja) {}
    std::string render(const Json& messages, const Json& more = Json::object()) const {
        Json request = {{"messages", messages}, {"add_generation_prompt", true}};
        for (const auto& [key, value] : more.items()) request[key] = value;
        auto text = templates_.apply(jinja_, request);
        return text ? *text : std::string();
    }
    bool shows(const Json& messages, std::string_view what) const {
        return render(messages).find(what) != std::string::npos;
    }

private:
    const ChatTemplates& templates_;
    const JinjaTemplate& jinja_;
};

Json probe_tools() {
    return Json::array(
        {{{"type", "function"},
          {"function",
           {{"name", kTool},
            {"description", "probes"},
            {"parameters",
             {{"type", "object"},
              {"properties", {{"exl3_probe_key", {{"type", "string"}, {"description", "p"}}}}},
              {"required", {"exl3_probe_key"}}}}}}}});
}

// A conversation with one call and its result.
Json probe_call(const Json& content, bool text_arguments) {
    Json arguments = {{"exl3_probe_key", "exl3 probe value"}};
    if (text_arguments) arguments = to_text(arguments);
    const Json call = {{"id", "call00001"},
                       {"type", "function"},
                       {"function", {{"name", kCall}, {"arguments", std::move(arguments)}}}};
    return Json::array({user(kQuestion),
                        {{"role", "assistant"}, {"content", content}, {"tool_calls", {call}}},
                        {{"role", "tool"},
                         {"content", "exl3 probe result"},
                         {"tool_call_id", "call00001"},
                         {"name", kCall}}});
}

// What stands between the question and the result when a call is rendered; empty if it fails.
std::string written_call(const Prober& prober, bool text_arguments) {
    const Json tools = {{"tools", probe_tools()}};
    for (const Json& content : {Json(), Json("")}) {
        const std::string text = prober.render(probe_call(content, text_arguments), tools);
        const size_t name = text.rfind(kCall);
        if (name == std::string::npos || text.find("exl3_probe_key", name) == std::string::npos)
            continue;
        // The name may come again with the result: the call is its first place after the question.
        const size_t question = text.find(kQuestion);
        const size_t begin = question == std::string::npos ? 0 : question;
        const size_t end = text.find("exl3 probe result", begin);
        return text.substr(begin, end == std::string::npos ? end : end - begin);
    }
    return {};
}

void probe_messages(const Prober& prober, MessageTraits& t) {
    const Json parts = Json::array(
        {{{"type", "text"}, {"text", "exl3 first"}}, {{"type", "text"}, {"text", "exl3 second"}}});
    const std::string listed = prober.render(Json::array({user(parts)}));
    // A template that prints the list itself does not know lists.
    t.part_lists = listed.find("exl3 first") != std::string::npos &&
                   listed.find("exl3 second") != std::string::npos &&
                   listed.find("'type'") == std::string::npos &&
                   listed.find("\"type\"") == std::string::npos;
    const auto with_role = [&](const char* role) {
        return prober.render(
            Json::array({{{"role", role}, {"content", "exl3 instructions"}}, user(kQuestion)}));
    };
    const std::string system = with_role("system"), developer = with_role("developer");
    t.developer_role = developer.find("exl3 instructions") != std::string::npos &&
                       (developer.find("developer") != std::string::npos || system.empty());
    t.system_anywhere =
        prober.shows(Json::array({user(kQuestion),
                                  {{"role", "assistant"}, {"content", "exl3 answer"}},
                                  {{"role", "system"}, {"content", "exl3 later"}},
                                  user(kQuestion)}),
                     "exl3 later");
}

void find_reasoning(std::string_view source, const std::function<bool(std::string_view)>& is_token,
                    OutputSyntax& out) {
    for (const auto& [open, close] : kThinkTags) {
        // In the template's text: the model was trained with it.
        const bool written = source.find(close) != std::string_view::npos;
        if (written || (is_token(open) && is_token(close))) {
            out.think_open = open;
            out.think_close = close;
            return;
        }
    }
}

// What stands before and after the name of a call, up to its arguments.
void find_beginning(const std::string& call, TemplateTraits& t) {
    t.before_name = "<tool_call>\n{\"name\": \"";
    t.after_name = "\", \"arguments\": ";
    const size_t name = call.find(kCall);
    const size_t key = call.find("exl3_probe_key");
    if (name == std::string::npos || key == std::string::npos || key < name) return;
    size_t begin = std::string::npos;
    for (const ToolFormat::Opener& o : t.output.tools->openers)
        begin = std::min(begin, call.rfind(o.text, name));
    if (begin == std::string::npos && t.output.tools->bare)
        begin = call.rfind(t.output.tools->bare, name);
    if (begin == std::string::npos || begin > name) return;
    t.before_name = call.substr(begin, name - begin);
    // Arguments in JSON begin at their brace; those in tags at the end of the name's own.
    const size_t after = name + std::string_view(kCall).size();
    const size_t brace = call.rfind('{', key);
    const size_t mark = call.find_first_of(">\n(", after);
    size_t end = after;
    if (brace != std::string::npos && brace > after)
        end = brace;
    else if (mark != std::string::npos && mark < key && call.find('<', after) >= mark)
        end = mark + 1;
    t.after_name = call.substr(after, end - after);
}

// The format whose opening tag is a token of the vocabulary.
const ToolFormat* format_of_tokens(const std::function<bool(std::string_view)>& is_token) {
    for (const std::string_view name : tool_format_names())
        if (const ToolFormat* f = find_tool_format(name))
            for (const ToolFormat::Opener& o : f->openers)
                if (is_token(o.text)) return f;
    return nullptr;
}

}  // namespace

TemplateTraits probe_template(const ChatTemplates& templates, const JinjaTemplate& jinja,
                              const std::function<bool(std::string_view)>& is_token) {
    const Prober prober(templates, jinja);
    const std::string& source = jinja.source();
    TemplateTraits t;
    probe_messages(prober, t.messages);
    std::string call = written_call(prober, false);
    if (call.empty()) {
        call = written_call(prober, true);
        t.messages.text_arguments = !call.empty();
    }
    const bool lists_tools =
        prober.render(Json::array({user(kQuestion)}), {{"tools", probe_tools()}}).find(kTool) !=
        std::string::npos;
    t.output.harmony = source.find("<|channel|>") != std::string::npos &&
                       source.find("<|message|>") != std::string::npos;
    t.messages.tools = t.output.harmony || lists_tools || !call.empty();
    if (!call.empty()) t.output.tools = recognize_tool_format(call);
    // Templates that list tools but cannot repeat a call still say in words how it is written.
    if (!t.output.tools && lists_tools) t.output.tools = recognize_tool_format(source);
    if (!t.output.tools && lists_tools) t.output.tools = format_of_tokens(is_token);
    t.messages.calls = !call.empty() || t.output.harmony;
    if (!t.output.tools) t.output.tools = find_tool_format(lists_tools ? "json" : "hermes");
    find_beginning(call, t);
    t.messages.short_call_ids = t.output.tools == find_tool_format("mistral");
    find_reasoning(source, is_token, t.output);
    return t;
}

TemplateTraits probe_templates(const ChatTemplates& templates, const Tokenizer& tokenizer) {
    const auto is_token = [&](std::string_view text) { return tokenizer.id_of(text).has_value(); };
    TemplateTraits t;
    auto jinja = templates.select(true);
    if (jinja) {
        t = probe_template(templates, *jinja, is_token);
    } else {
        t.output.tools = find_tool_format("hermes");
        t.messages.tools = false;
        find_beginning("", t);
    }
    const auto special = [&](std::string_view text) {
        const auto id = tokenizer.id_of(text);
        return id && tokenizer.is_special(*id);
    };
    bool tags_special = special(t.output.think_open) || special(t.output.think_close);
    for (const ToolFormat::Opener& o : t.output.tools->openers)
        tags_special =
            tags_special || special(o.text.substr(0, o.text.find('>') + 1)) || special(o.text);
    t.special_text = tags_special || t.output.harmony;
    if (t.special_text)
        for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
            if (tokenizer.is_special(id)) t.output.hidden.push_back(tokenizer.token_of(id));
    return t;
}

}  // namespace exl3::api
