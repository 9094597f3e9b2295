// The OpenAPI document, made from the table of routes and the sampler's table of knobs.
#include <map>

#include "exl3_version.h"
#include "sample/params.h"
#include "server/routes.h"

namespace exl3::server {
namespace {

Json ref(const std::string& name) {
    return {{"$ref", "#/components/schemas/" + name}};
}
Json text(const char* what = "") {
    Json s = {{"type", Json::array({"string", "null"})}};
    if (*what) s["description"] = what;
    return s;
}
Json flag(const char* what = "") {
    Json s = {{"type", Json::array({"boolean", "null"})}};
    if (*what) s["description"] = what;
    return s;
}
Json whole(int64_t least, int64_t greatest, const char* what = "") {
    Json s = {
        {"type", Json::array({"integer", "null"})}, {"minimum", least}, {"maximum", greatest}};
    if (*what) s["description"] = what;
    return s;
}
Json number(double least, double greatest, const char* what = "") {
    Json s = {{"type", Json::array({"number", "null"})}, {"minimum", least}, {"maximum", greatest}};
    if (*what) s["description"] = what;
    return s;
}
Json list_of(Json items) {
    return {{"type", "array"}, {"items", std::move(items)}};
}
Json any_of(std::initializer_list<Json> options) {
    return {{"anyOf", Json(std::vector<Json>(options))}};
}
Json object(Json properties, std::initializer_list<const char*> required = {}) {
    Json s = {{"type", "object"}, {"properties", std::move(properties)}};
    if (required.size() > 0)
        s["required"] = std::vector<std::string>(required.begin(), required.end());
    return s;
}
Json plain_text() {
    return {{"type", "string"}};
}
Json ids(int64_t greatest = INT32_MAX) {
    return list_of({{"type", "integer"}, {"minimum", 0}, {"maximum", greatest}});
}

// A knob of the sampler as a property.
Json knob(const ParamInfo& info) {
    using P = SamplerParams;
    const std::string what(info.description);
    if (std::holds_alternative<double P::*>(info.field)) {
        Json s = number(info.min, info.max, what.c_str());
        if (info.min_excluded) {
            s.erase("minimum");
            s["exclusiveMinimum"] = info.min;
        }
        return s;
    }
    if (std::holds_alternative<int P::*>(info.field))
        return whole(static_cast<int64_t>(info.min), static_cast<int64_t>(info.max), what.c_str());
    if (std::holds_alternative<bool P::*>(info.field)) return flag(what.c_str());
    if (std::holds_alternative<std::vector<int32_t> P::*>(info.field)) {
        Json s = any_of({ids(), {{"type", "string"}}, {{"type", "null"}}});
        s["description"] = what;
        return s;
    }
    if (std::holds_alternative<std::vector<std::string> P::*>(info.field)) {
        Json s = any_of({list_of(plain_text()), {{"type", "null"}}});
        s["description"] = what;
        return s;
    }
    return whole(INT64_MIN, INT64_MAX, what.c_str());
}

// Fields that all generating routes share.
Json shared_fields() {
    Json p = {{"model", text("name of the model; empty: the loaded one")},
              {"stream", flag("answer in events")}};
    for (const ParamInfo& info : sampler_param_table())
        if (info.name != "logprobs") p[std::string(info.name)] = knob(info);
    p["logit_bias"] = {
        {"type", Json::array({"object", "null"})},
        {"additionalProperties", {{"type", "number"}, {"minimum", -100}, {"maximum", 100}}},
        {"description", "token id to what is added to its logit"}};
    p["max_tokens"] =
        whole(-1, int64_t{1} << 31, "longest answer; absent or -1: what the context holds");
    p["min_tokens"] = whole(0, int64_t{1} << 31, "no end before so many");
    p["stop"] = any_of({plain_text(), list_of(plain_text()), {{"type", "null"}}});
    p["stop_token_ids"] = any_of({ids(), {{"type", "null"}}});
    p["include_stop_str_in_output"] = flag("keep the stop string");
    p["ignore_eos"] = flag("end tokens are never written");
    p["skip_special_tokens"] = flag("special tokens give no text (true)");
    p["add_bos_token"] = flag();
    p["token_healing"] = flag("the last prompt token may be replaced by a longer one");
    p["banned_strings"] = any_of({plain_text(), list_of(plain_text()), {{"type", "null"}}});
    p["priority"] = whole(-1000000, 1000000, "higher ones go first");
    p["response_format"] = any_of({ref("ResponseFormat"), {{"type", "null"}}});
    p["json_schema"] = {{"description", "schema that the answer follows"}};
    p["regex_pattern"] = text("expression that the answer matches");
    p["grammar_string"] = text("grammar of the answer: GBNF or Lark");
    p["guided_choice"] = any_of({list_of(plain_text()), {{"type", "null"}}});
    p["stream_options"] = object({{"include_usage", flag()}, {"continuous_usage_stats", flag()}});
    p["stream_options"]["type"] = Json::array({"object", "null"});
    return p;
}

Json chat_request() {
    Json p = shared_fields();
    p["messages"] = list_of(ref("ChatMessage"));
    p["messages"]["minItems"] = 1;
    p["n"] = whole(1, 4096, "answers");
    p["max_completion_tokens"] = whole(-1, int64_t{1} << 31);
    p["logprobs"] = flag("report the probabilities of the tokens");
    p["top_logprobs"] = whole(0, 20);
    p["tools"] = any_of({list_of(ref("Tool")), {{"type", "null"}}});
    p["tool_choice"] = any_of(
        {{{"enum", {"none", "auto", "required"}}}, {{"type", "object"}}, {{"type", "null"}}});
    p["parallel_tool_calls"] = flag();
    p["reasoning_effort"] = text("none, minimal, low, medium, high, ...");
    p["enable_thinking"] = flag();
    p["chat_template_kwargs"] = {{"type", Json::array({"object", "null"})}};
    p["add_generation_prompt"] = flag();
    p["continue_final_message"] = flag("go on in the last message");
    p["response_prefix"] = text("begins the answer without being part of it");
    p["reasoning_format"] = text("none: reasoning stays in the content");
    return object(std::move(p), {"messages"});
}

Json completion_request() {
    Json p = shared_fields();
    p["prompt"] = any_of({plain_text(), list_of(plain_text()), ids(), list_of(ids())});
    p["n"] = whole(1, 4096, "answers for each prompt");
    p["best_of"] = whole(1, 4096, "equal to n");
    p["logprobs"] = any_of({whole(0, 20), flag()});
    p["echo"] = flag("the prompt comes before the text");
    p["suffix"] = text();
    return object(std::move(p), {"prompt"});
}

Json responses_request() {
    Json p = shared_fields();
    p["input"] = any_of({plain_text(), list_of({{"type", "object"}})});
    p["instructions"] = text();
    p["max_output_tokens"] = whole(-1, int64_t{1} << 31);
    p["tools"] = any_of({list_of({{"type", "object"}}), {{"type", "null"}}});
    p["tool_choice"] = any_of({plain_text(), {{"type", "object"}}, {{"type", "null"}}});
    p["parallel_tool_calls"] = flag();
    p["previous_response_id"] = text();
    p["store"] = flag("keep the reply for previous_response_id (true)");
    p["reasoning"] = {{"type", Json::array({"object", "null"})}};
    p["text"] = {{"type", Json::array({"object", "null"})}};
    p["top_logprobs"] = whole(0, 20);
    p["metadata"] = {{"type", Json::array({"object", "null"})}};
    return object(std::move(p), {"input"});
}

Json messages_request() {
    Json p = {{"model", text()},
              {"messages",
               list_of(object({{"role", plain_text()},
                               {"content", any_of({plain_text(), list_of({{"type", "object"}})})}},
                              {"role", "content"}))},
              {"system", any_of({plain_text(), list_of({{"type", "object"}}), {{"type", "null"}}})},
              {"max_tokens", whole(1, int64_t{1} << 31)},
              {"stop_sequences", any_of({list_of(plain_text()), {{"type", "null"}}})},
              {"stream", flag()},
              {"temperature", number(0, 10)},
              {"top_p", number(0, 1)},
              {"top_k", whole(-1, INT32_MAX)},
              {"tools", any_of({list_of({{"type", "object"}}), {{"type", "null"}}})},
              {"tool_choice", {{"type", Json::array({"object", "null"})}}},
              {"thinking", {{"type", Json::array({"object", "null"})}}},
              {"output_config", {{"type", Json::array({"object", "null"})}}},
              {"metadata", {{"type", Json::array({"object", "null"})}}}};
    return object(std::move(p), {"messages"});
}

Json schemas() {
    return {
        {"Error", object({{"error", object({{"message", plain_text()},
                                            {"type", plain_text()},
                                            {"param", text()},
                                            {"code", text()}},
                                           {"message", "type"})}},
                         {"error"})},
        {"ResponseFormat",
         object({{"type", {{"enum", {"text", "json_object", "json_schema", "regex", "grammar"}}}},
                 {"json_schema", {{"type", "object"}}},
                 {"regex", plain_text()},
                 {"grammar", plain_text()}},
                {"type"})},
        {"ChatMessage",
         object({{"role", plain_text()},
                 {"content",
                  any_of({plain_text(),
                          list_of(object({{"type", {{"const", "text"}}}, {"text", plain_text()}},
                                         {"type", "text"})),
                          {{"type", "null"}}})},
                 {"name", text()},
                 {"reasoning_content", text()},
                 {"tool_calls", any_of({list_of(object({{"id", text()},
                                                        {"type", text()},
                                                        {"function", object({{"name", plain_text()},
                                                                             {"arguments", text()}},
                                                                            {"name"})}},
                                                       {"function"})),
                                        {{"type", "null"}}})},
                 {"tool_call_id", text()}},
                {"role"})},
        {"Tool",
         object({{"type", {{"const", "function"}}},
                 {"function", object({{"name", plain_text()},
                                      {"description", text()},
                                      {"parameters", {{"type", Json::array({"object", "null"})}}},
                                      {"strict", flag()}},
                                     {"name"})}},
                {"type", "function"})},
        {"ChatRequest", chat_request()},
        {"CompletionRequest", completion_request()},
        {"ResponsesRequest", responses_request()},
        {"MessagesRequest", messages_request()},
        {"EmbeddingsRequest",
         object({{"input", any_of({plain_text(), list_of(plain_text()), ids(), list_of(ids())})},
                 {"model", text()},
                 {"dimensions", whole(1, 1 << 20)},
                 {"encoding_format", {{"enum", {"float", "base64", nullptr}}}}},
                {"input"})},
        {"LoadRequest", object({{"model_name", plain_text()},
                                {"max_seq_len", whole(-1, int64_t{1} << 31)},
                                {"cache_size", whole(1, int64_t{1} << 33)},
                                {"cache_mode", text()},
                                {"chunk_size", whole(256, 65536)},
                                {"prompt_template", text()},
                                {"stream", flag()},
                                {"skip_queue", flag()}},
                               {"model_name"})},
        {"EncodeRequest", object({{"text", any_of({plain_text(), list_of(ref("ChatMessage"))})},
                                  {"add_bos_token", flag()},
                                  {"encode_special_tokens", flag()}},
                                 {"text"})},
        {"DecodeRequest",
         object({{"tokens", ids()}, {"decode_special_tokens", flag()}}, {"tokens"})},
        {"TokenizeRequest", object({{"content", text()},
                                    {"prompt", text()},
                                    {"add_special", flag()},
                                    {"parse_special", flag()},
                                    {"with_pieces", flag()}})},
        {"DetokenizeRequest", object({{"tokens", ids()}}, {"tokens"})},
        {"TemplateRequest", object({{"messages", list_of(ref("ChatMessage"))}}, {"messages"})},
    };
}

const std::map<std::string_view, const char*> kBodies = {
    {"/v1/chat/completions", "ChatRequest"}, {"/v1/completions", "CompletionRequest"},
    {"/v1/responses", "ResponsesRequest"},   {"/v1/responses/input_tokens", "ResponsesRequest"},
    {"/v1/messages", "MessagesRequest"},     {"/v1/messages/count_tokens", "MessagesRequest"},
    {"/v1/embeddings", "EmbeddingsRequest"}, {"/v1/model/load", "LoadRequest"},
    {"/v1/token/encode", "EncodeRequest"},   {"/v1/token/decode", "DecodeRequest"},
    {"/tokenize", "TokenizeRequest"},        {"/detokenize", "DetokenizeRequest"},
    {"/apply-template", "TemplateRequest"},
};

Json content(const char* type, Json schema) {
    return {{"content", {{type, {{"schema", std::move(schema)}}}}}};
}

Json answer_of(const Route& r) {
    Json ok = {{"description", "done"}};
    const std::string_view tag = r.tag;
    if (tag == "page") {
        ok["content"] = Json::object();
        for (const char* type : {"text/html", "text/css", "text/javascript"})
            ok["content"][type] = {{"schema", plain_text()}};
        return ok;
    }
    if (r.path == "/metrics") {
        ok["content"] = content("text/plain", plain_text())["content"];
        return ok;
    }
    ok["content"] = {{"application/json", {{"schema", Json::object()}}}};
    if (tag == "chat" || tag == "responses" || tag == "messages" || r.path == "/v1/model/load")
        ok["content"]["text/event-stream"] = {
            {"schema", object({{"event", plain_text()}, {"data", plain_text()}}, {"data"})}};
    return ok;
}

Json operation(const Route& r) {
    Json responses = {{"200", answer_of(r)}};
    const auto error = [&](const char* status, const char* what) {
        responses[status] = content("application/json", Json::object());
        responses[status]["description"] = what;
    };
    const auto body = kBodies.find(r.path);
    const bool has_body = body != kBodies.end();
    if (r.access != Access::nobody) error("401", "no valid key");
    if (r.access == Access::admin) error("403", "an admin key is needed");
    if (has_body) {
        error("400", "the request is wrong; 'param' names the field");
        error("413", "the body is too large");
        error("429", "too many requests wait");
    }
    error("404", "there is no such thing");
    error("503", "no model is loaded, or the server cannot go on");
    Json op = {{"summary", std::string(r.summary)},
               {"tags", Json::array({std::string(r.tag)})},
               {"responses", std::move(responses)}};
    if (has_body)
        op["requestBody"] = {{"required", true},
                             {"content", {{"application/json", {{"schema", ref(body->second)}}}}}};
    if (r.access != Access::nobody) op["security"] = Json::array({{{"key", Json::array()}}});
    return op;
}

}  // namespace

Json openapi_document() {
    Json paths = Json::object();
    for (const Route& r : routes()) {
        std::string path(r.path);
        Json op = operation(r);
        if (const size_t star = path.find('*'); star != std::string::npos) {
            path.replace(star, 1, "{id}");
            op["parameters"] = Json::array(
                {{{"name", "id"}, {"in", "path"}, {"required", true}, {"schema", plain_text()}}});
        }
        std::string method(r.method);
        for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
        paths[path][method] = std::move(op);
    }
    return {{"openapi", "3.1.0"},
            {"info",
             {{"title", "exl3"},
              {"version", EXL3_VERSION},
              {"description", "Language models over the protocols of OpenAI and Anthropic"}}},
            {"paths", std::move(paths)},
            {"components",
             {{"schemas", schemas()},
              {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace exl3::server
