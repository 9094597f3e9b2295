// From a request to token ids.
#include <fmt/format.h>

#include "api/messages.h"
#include "base/log.h"
#include "gen/conversation.h"
#include "server/generation.h"

namespace exl3::server {
namespace {

using api::ApiError;

// The template a request is rendered with. Throws ApiError.
JinjaTemplate choose_template(const LoadedModel& model, const api::GenerationRequest& r) {
    if (!r.template_source.empty()) {
        auto parsed = JinjaTemplate::parse(r.template_source, "chat_template");
        if (!parsed) throw api::bad_field("chat_template", parsed.error().what());
        return std::move(*parsed);
    }
    auto found = model.templates.select(!r.tools.empty(), r.template_name);
    if (!found)
        throw ApiError(400,
                       fmt::format("messages: this model has no usable chat template ({}); "
                                   "use /v1/completions, or give the server one with "
                                   "--template",
                                   found.error().what()),
                       "messages");
    return std::move(*found);
}

// Templates that cannot have null where an assistant only called tools get empty text instead.
std::string render(const LoadedModel& model, const JinjaTemplate& jinja, Json& chat) {
    auto text = model.templates.apply(jinja, chat);
    if (text) return std::move(*text);
    bool changed = false;
    for (Json& m : chat["messages"])
        if (m.contains("content") && m["content"].is_null()) {
            m["content"] = "";
            changed = true;
        }
    if (changed) {
        auto again = model.templates.apply(jinja, chat);
        if (again) return std::move(*again);
    }
    throw ApiError(400, fmt::format("messages: {}", text.error().what()), "messages");
}

// The format of an answer that is a call of one of the tools: {"name": ..., "arguments": ...} as
// the model writes it, with arguments as the tool's schema wants them.
api::OutputFormat call_format(const std::vector<api::ToolSpec>& tools, const std::string& key) {
    Json any = Json::array();
    for (const api::ToolSpec& t : tools)
        any.push_back({{"type", "object"},
                       {"properties", {{"name", {{"const", t.name}}}, {key, t.parameters}}},
                       {"required", {"name", key}},
                       {"additionalProperties", false}});
    return {api::OutputFormat::Kind::json_schema, "tools", {{"anyOf", std::move(any)}}, true};
}

// Makes the answer a call. Where calls are JSON, it begins with their opening tag and a grammar
// does the rest; other formats begin with the whole of a call up to its arguments.
void force_call(const LoadedModel& model, PreparedRequest& p) {
    const api::ToolChoice& choice = p.request.tool_choice;
    if (choice.mode != api::ToolChoice::Mode::required) return;
    std::vector<api::ToolSpec> tools = p.request.tools;
    if (!choice.name.empty())
        std::erase_if(tools, [&](const api::ToolSpec& t) { return t.name != choice.name; });
    const std::string& before = model.traits.before_name;
    const std::string& after = model.traits.after_name;
    const size_t brace = before.rfind('{');
    const size_t key = after.find('"', 1), key_end = after.find('"', key + 1);
    const bool is_json = brace != std::string::npos && before.ends_with('"') &&
                         before.find("\"name\"", brace) != std::string::npos &&
                         key != std::string::npos && key_end != std::string::npos;
    if (!is_json) {
        p.forced = model.traits.call_beginning(tools[0].name);
        return;
    }
    p.forced = before.substr(0, brace);
    p.constraint =
        model.constraints->compile(call_format(tools, after.substr(key + 1, key_end - key - 1)));
}

// Where in an answer a format holds: after reasoning, and not where a tool is called instead.
void set_scope(const LoadedModel& model, PreparedRequest& p) {
    const api::OutputSyntax& syntax = p.parser.syntax;
    if (syntax.harmony) {
        p.scope.begins_after = "<|channel|>final<|message|>";
        p.scope_waits = true;
        return;
    }
    p.scope.begins_after = syntax.think_close;
    p.scope_waits = p.parser.starts_in_reasoning;
    if (!syntax.think_open.empty())
        if (const auto id = model.tokenizer.id_of(syntax.think_open)) p.scope.openers = {*id};
    if (!syntax.tools) return;
    for (const api::ToolFormat::Opener& o : syntax.tools->openers)
        if (const auto id = model.tokenizer.id_of(o.text)) p.scope.exits.push_back(*id);
}

std::string render_chat(const LoadedModel& model, PreparedRequest& p) {
    api::GenerationRequest& r = p.request;
    const JinjaTemplate jinja = choose_template(model, r);
    const bool uses_tools = r.tool_choice.mode != api::ToolChoice::Mode::none;
    api::adapt_messages(r.chat, model.traits.messages,
                        uses_tools ? r.tools : std::vector<api::ToolSpec>{});
    std::string prompt = render(model, jinja, r.chat);
    p.parser.syntax = model.traits.output;
    if (!uses_tools) p.parser.syntax.tools = nullptr;
    if (!r.parse_reasoning) p.parser.syntax.think_open = p.parser.syntax.think_close = "";
    if (!r.output.skip_special) p.parser.syntax.hidden.clear();
    p.parser.tools = r.tools;
    if (!r.tool_choice.parallel) p.parser.max_calls = 1;
    if (uses_tools) force_call(model, p);
    p.parser.starts_in_reasoning = p.forced.empty() && r.response_prefix.empty() &&
                                   model.starts_in_reasoning(prompt, p.parser.syntax);
    if (r.output.format && !p.constraint) {
        p.constraint = model.constraints->compile(*r.output.format);
        set_scope(model, p);
    }
    return prompt + r.response_prefix + p.forced;
}

std::vector<int32_t> encode_text(const LoadedModel& model, const api::GenerationRequest& r,
                                 const std::string& text) {
    auto ids = r.output.add_bos ? model.tokenizer.encode_prompt(text)
                                : model.tokenizer.encode(text, {.add_special = false});
    if (!ids.empty()) return ids;
    if (const auto bos = model.tokenizer.bos_id()) return {*bos};
    throw api::bad_field("prompt", "found no text, needed some: this model has no BOS token");
}

}  // namespace

int64_t room_for_answer(const LoadedModel& model, const api::GenerationRequest& request,
                        size_t prompt_tokens, bool clamp) {
    const int64_t context = model.generator->max_context();
    const auto prompt = static_cast<int64_t>(prompt_tokens);
    const int64_t room = context - prompt;
    const int64_t least = request.output.max_tokens == 0 ? 0 : 1;
    if (room < least) throw api::prompt_too_long(prompt, least, context);
    if (!request.output.max_tokens) return room;
    if (*request.output.max_tokens > room && !clamp)
        throw api::prompt_too_long(prompt, *request.output.max_tokens, context);
    return std::min(*request.output.max_tokens, room);
}

PreparedRequest prepare(const LoadedModel& model, api::GenerationRequest request) {
    PreparedRequest p;
    p.request = std::move(request);
    if (p.request.chat.is_object()) {
        const std::string prompt = render_chat(model, p);
        log(LogLevel::debug, "prompt: {}", prompt);
        p.prompts.push_back(encode_rendered(model.tokenizer, prompt));
        if (p.prompts[0].empty())
            throw api::bad_field("messages", "the template made no text of them");
        return p;
    }
    if (p.request.output.format)
        p.constraint = model.constraints->compile(*p.request.output.format);
    if (!p.request.suffix.empty())
        throw api::bad_field("suffix", "this model fills no gaps, needed no suffix");
    for (const auto& prompt : p.request.prompts) {
        if (const auto* text = std::get_if<std::string>(&prompt)) {
            p.prompts.push_back(encode_text(model, p.request, *text));
            p.echo.push_back(*text);
        } else {
            const auto& ids = std::get<std::vector<int32_t>>(prompt);
            if (ids.empty()) throw api::bad_field("prompt", "found no tokens, needed at least one");
            p.prompts.push_back(ids);
            if (p.request.echo) p.echo.push_back(model.tokenizer.decode(ids));
        }
    }
    return p;
}

}  // namespace exl3::server
