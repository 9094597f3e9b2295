// The routes that generate text.
#include <fmt/format.h>

#include "api/fields.h"
#include "api/messages.h"
#include "server/generation.h"
#include "server/response_store.h"
#include "server/routes.h"

namespace exl3::server {
namespace {

using api::GenerationRequest;

std::shared_ptr<LoadedModel> named_model(Service& service, const Call& call, const Json& body) {
    const auto name = api::Fields(body, "").text({"model"});
    return service.model_for(name.value_or(""), call.access);
}

ResponseStore::Item stored(Service& service, const std::string& id, const std::string& param) {
    auto item = service.responses().get(id);
    if (!item)
        throw api::ApiError(404, fmt::format("there is no response '{}'", id), param,
                            param.empty() ? "not_found" : "previous_response_not_found");
    return std::move(*item);
}

// A reply's items as the chat message that the next request goes on from.
Json answer_message(const Json& response) {
    Json m = {{"role", "assistant"}, {"content", nullptr}};
    for (const Json& item : response["output"]) {
        const std::string type = item["type"];
        if (type == "message") m["content"] = item["content"][0]["text"];
        if (type == "reasoning") m["reasoning_content"] = item["content"][0]["text"];
        if (type == "function_call" || type == "custom_tool_call") {
            if (!m.contains("tool_calls")) m["tool_calls"] = Json::array();
            const Json arguments =
                type == "function_call" ? item["arguments"] : Json{{"input", item["input"]}};
            m["tool_calls"].push_back(
                {{"id", item["call_id"]},
                 {"type", "function"},
                 {"function", {{"name", item["name"]}, {"arguments", arguments}}}});
        }
    }
    if (m["content"].is_null() && !m.contains("tool_calls")) m["content"] = "";
    return m;
}

// The messages that previous_response_id stands for.
Json earlier_messages(Service& service, const Json& body) {
    const api::Fields f(body, "");
    const auto previous = f.text({"previous_response_id"});
    if (!previous) return Json::array();
    return stored(service, *previous, "previous_response_id").messages;
}

Json input_items(const Json& body) {
    const Json& input = body["input"];
    if (input.is_array()) return input;
    return Json::array({{{"type", "message"},
                         {"id", api::make_id("msg_")},
                         {"role", "user"},
                         {"status", "completed"},
                         {"content", Json::array({{{"type", "input_text"}, {"text", input}}})}}});
}

// Instructions count for one request only: they are no part of what is kept.
Json without_instructions(const Json& body, const Json& messages) {
    Json kept = messages;
    if (body.contains("instructions") && !body["instructions"].is_null() && !kept.empty())
        kept.erase(0);
    return kept;
}

}  // namespace

void chat_completions(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    auto model = named_model(service, call, body);
    GenerationRequest r = api::read_chat(body, service.defaults(*model));
    start_generation(service, call, std::move(model), std::move(r),
                     {api::make_chat_reply, false, {}});
}

void completions(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    auto model = named_model(service, call, body);
    GenerationRequest r = api::read_completion(body, service.defaults(*model));
    start_generation(service, call, std::move(model), std::move(r),
                     {api::make_completion_reply, false, {}});
}

void responses(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    auto model = named_model(service, call, body);
    GenerationRequest r =
        api::read_responses(body, service.defaults(*model), earlier_messages(service, body));
    Protocol protocol{api::make_responses_reply, true, {}};
    if (api::Fields(body, "").flag({"store"}).value_or(true))
        protocol.keep = [&service, messages = without_instructions(body, r.chat["messages"]),
                         input = input_items(body)](const Json& reply) {
            Json all = messages;
            all.push_back(answer_message(reply));
            service.responses().put(reply["id"], {reply, std::move(all), input});
        };
    start_generation(service, call, std::move(model), std::move(r), std::move(protocol));
}

void response_input_tokens(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    const auto model = named_model(service, call, body);
    const PreparedRequest p = prepare(*model, api::read_responses(body, service.defaults(*model),
                                                                  earlier_messages(service, body)));
    call.reply(200, {{"object", "response.input_tokens"}, {"input_tokens", p.prompts[0].size()}});
}

void get_response(Service& service, const Call& call) {
    call.reply(200, stored(service, call.tail, "").response);
}

void delete_response(Service& service, const Call& call) {
    stored(service, call.tail, "");
    service.responses().erase(call.tail);
    call.reply(200, {{"id", call.tail}, {"object", "response"}, {"deleted", true}});
}

// Answers are not made in the background, so one that can be named is complete.
void cancel_response(Service& service, const Call& call) {
    call.reply(200, stored(service, call.tail, "").response);
}

void response_input_items(Service& service, const Call& call) {
    const Json items = stored(service, call.tail, "").input;
    const auto id = [](const Json& item) { return item.value("id", Json()); };
    call.reply(200, {{"object", "list"},
                     {"data", items},
                     {"first_id", items.empty() ? Json() : id(items.front())},
                     {"last_id", items.empty() ? Json() : id(items.back())},
                     {"has_more", false}});
}

void messages(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    auto model = named_model(service, call, body);
    GenerationRequest r = api::read_messages(body, service.defaults(*model));
    start_generation(service, call, std::move(model), std::move(r),
                     {api::make_messages_reply, true, {}});
}

void count_tokens(Service& service, const Call& call) {
    Json body = api::parse_body(call.request().body);
    const auto model = named_model(service, call, body);
    const PreparedRequest p = prepare(*model, api::read_messages(body, service.defaults(*model)));
    call.reply(200, {{"input_tokens", p.prompts[0].size()}});
}

}  // namespace exl3::server
