// Text to token ids and back.
#include "api/fields.h"
#include "api/messages.h"
#include "server/generation.h"
#include "server/routes.h"

namespace exl3::server {
namespace {

// The prompt that a body's messages make.
std::string render_messages(Service& service, const LoadedModel& model, const Json& body,
                            bool answer) {
    Json request = body;
    if (!request.contains("add_generation_prompt")) request["add_generation_prompt"] = answer;
    PreparedRequest p = prepare(model, api::read_chat(request, service.defaults(model)));
    return model.tokenizer.decode(p.prompts[0], {.skip_special = false});
}

std::vector<int32_t> message_ids(Service& service, const LoadedModel& model, const Json& body,
                                 bool answer) {
    Json request = body;
    if (!request.contains("add_generation_prompt")) request["add_generation_prompt"] = answer;
    return std::move(prepare(model, api::read_chat(request, service.defaults(model))).prompts[0]);
}

std::vector<int32_t> read_ids(const api::Fields& f, std::string_view name, int vocab) {
    f.need_array(name);
    std::vector<int32_t> ids;
    for (const int64_t id : f.integers({name})) {
        if (id < 0 || id >= vocab) f.fail(name, "found a number that is no token id");
        ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
}

}  // namespace

void token_encode(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    const api::Fields f(body, "");
    const auto model = service.model_for(f.text({"model"}).value_or(""), call.access);
    const Json* text = f.find({"text"});
    if (!text) f.fail("text", "missing, needed a string or a list of messages");
    std::vector<int32_t> ids;
    if (text->is_array()) {
        Json request = body;
        request["messages"] = *text;
        ids = message_ids(service, *model, request, false);
    } else {
        ids = model->tokenizer.encode(
            f.need_text("text"),
            {.add_special = f.flag({"add_bos_token"}).value_or(true),
             .parse_special = f.flag({"encode_special_tokens"}).value_or(true)});
    }
    call.reply(200, {{"tokens", ids}, {"length", ids.size()}});
}

void token_decode(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    const api::Fields f(body, "");
    const auto model = service.model_for(f.text({"model"}).value_or(""), call.access);
    const auto ids = read_ids(f, "tokens", model->tokenizer.vocab_size());
    const bool keep = f.flag({"decode_special_tokens"}).value_or(true);
    call.reply(200, {{"text", model->tokenizer.decode(ids, {.skip_special = !keep})}});
}

// {content, add_special, parse_special, with_pieces} of llama.cpp, or {prompt} or {messages} of
// vLLM.
void tokenize(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    const api::Fields f(body, "");
    const auto model = service.model_for(f.text({"model"}).value_or(""), call.access);
    std::vector<int32_t> ids;
    const bool vllm = f.has({"prompt"}) || f.has({"messages"});
    if (f.has({"messages"})) {
        ids = message_ids(service, *model, body, true);
    } else {
        const auto text = f.text({"prompt", "content"});
        if (!text) f.fail("content", "missing, needed a string (or prompt, or messages)");
        ids = model->tokenizer.encode(
            *text, {.add_special = f.flag({"add_special", "add_special_tokens"}).value_or(vllm),
                    .parse_special = f.flag({"parse_special"}).value_or(true)});
    }
    Json tokens = Json(ids);
    if (f.flag({"with_pieces"}).value_or(false)) {
        tokens = Json::array();
        for (const int32_t id : ids)
            tokens.push_back({{"id", id}, {"piece", api::readable(model->tokenizer.bytes_of(id))}});
    }
    call.reply(200, {{"tokens", std::move(tokens)},
                     {"count", ids.size()},
                     {"max_model_len", model->generator->max_context()}});
}

void detokenize(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    const api::Fields f(body, "");
    const auto model = service.model_for(f.text({"model"}).value_or(""), call.access);
    const auto ids = read_ids(f, "tokens", model->tokenizer.vocab_size());
    const std::string text = model->tokenizer.decode(ids, {.skip_special = false});
    call.reply(200, {{"content", text}, {"prompt", text}});
}

void apply_template(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    const auto model =
        service.model_for(api::Fields(body, "").text({"model"}).value_or(""), call.access);
    call.reply(200, {{"prompt", render_messages(service, *model, body, true)}});
}

}  // namespace exl3::server
