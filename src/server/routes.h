#pragma once
#include <span>
#include <string_view>

#include "server/service.h"

namespace exl3::server {

/// A path and method of the API.
struct Route {
    std::string_view method;
    std::string_view path;  ///< '*' at the end stands for any rest, '*' inside for one part
    Access access;          ///< that it needs; nobody: open to all
    void (*run)(Service&, const Call&);
    std::string_view summary;
    std::string_view tag;
};
std::span<const Route> routes();

struct RouteMatch {
    const Route* route = nullptr;  ///< nullptr: no such path, or not with this method
    bool path_exists = false;
    std::string tail;
    std::string allow;  ///< methods the path has
};
/// Paths below /v1 are also found without it.
RouteMatch find_route(std::string_view method, std::string_view path);

// Handlers, by file. They answer through the call, or throw ApiError or Error.
void chat_completions(Service&, const Call&);  // route_generate.cpp
void completions(Service&, const Call&);
void responses(Service&, const Call&);
void messages(Service&, const Call&);
void count_tokens(Service&, const Call&);
void response_input_tokens(Service&, const Call&);
void get_response(Service&, const Call&);
void delete_response(Service&, const Call&);
void cancel_response(Service&, const Call&);
void response_input_items(Service&, const Call&);
void list_models(Service&, const Call&);  // route_models.cpp
void get_model(Service&, const Call&);
void model_card(Service&, const Call&);
void load_model(Service&, const Call&);
void unload_model(Service&, const Call&);
void list_templates(Service&, const Call&);
void auth_permission(Service&, const Call&);
void props(Service&, const Call&);
void embeddings(Service&, const Call&);
void token_encode(Service&, const Call&);  // route_tokens.cpp
void token_decode(Service&, const Call&);
void tokenize(Service&, const Call&);
void detokenize(Service&, const Call&);
void apply_template(Service&, const Call&);
void health(Service&, const Call&);  // route_info.cpp
void ping(Service&, const Call&);
void version(Service&, const Call&);
void serviceinfo(Service&, const Call&);
void metrics(Service&, const Call&);
void openapi(Service&, const Call&);
void web_page(Service&, const Call&);
void web_file(Service&, const Call&);

/// The OpenAPI 3.1 document of all routes.
Json openapi_document();

}  // namespace exl3::server
