#include "server/routes.h"

#include <array>

namespace exl3::server {
namespace {

constexpr Access kOpen = Access::nobody, kUser = Access::user, kAdmin = Access::admin;

constexpr std::array kRoutes = {
    Route{"POST", "/v1/chat/completions", kUser, chat_completions, "Answers a conversation",
          "chat"},
    Route{"POST", "/v1/completions", kUser, completions, "Continues texts", "chat"},
    Route{"POST", "/v1/responses", kUser, responses, "Answers a list of items", "responses"},
    Route{"POST", "/v1/responses/input_tokens", kUser, response_input_tokens,
          "Counts the tokens of a request", "responses"},
    Route{"GET", "/v1/responses/*/input_items", kUser, response_input_items,
          "Items of a kept request", "responses"},
    Route{"POST", "/v1/responses/*/cancel", kUser, cancel_response, "A kept reply", "responses"},
    Route{"GET", "/v1/responses/*", kUser, get_response, "A kept reply", "responses"},
    Route{"DELETE", "/v1/responses/*", kUser, delete_response, "Forgets a reply", "responses"},
    Route{"POST", "/v1/messages", kUser, messages, "Answers a conversation, as Anthropic does",
          "messages"},
    Route{"POST", "/v1/messages/count_tokens", kUser, count_tokens,
          "Counts the tokens of a request", "messages"},
    Route{"GET", "/v1/models", kUser, list_models, "The models there are", "models"},
    Route{"GET", "/v1/model/list", kUser, list_models, "The models there are", "models"},
    Route{"GET", "/v1/models/*", kUser, get_model, "One model", "models"},
    Route{"GET", "/v1/model", kUser, model_card, "The loaded model and its settings", "models"},
    Route{"POST", "/v1/model/load", kAdmin, load_model, "Loads a model, with progress", "models"},
    Route{"POST", "/v1/model/unload", kAdmin, unload_model, "Unloads the model", "models"},
    Route{"GET", "/v1/templates", kUser, list_templates, "Names of the chat templates", "models"},
    Route{"GET", "/v1/template/list", kUser, list_templates, "Names of the chat templates",
          "models"},
    Route{"GET", "/v1/auth/permission", kUser, auth_permission, "What the key permits", "server"},
    Route{"POST", "/v1/token/encode", kUser, token_encode, "Text or messages to token ids",
          "tokens"},
    Route{"POST", "/v1/token/decode", kUser, token_decode, "Token ids to text", "tokens"},
    Route{"POST", "/tokenize", kUser, tokenize, "Text or messages to token ids", "tokens"},
    Route{"POST", "/detokenize", kUser, detokenize, "Token ids to text", "tokens"},
    Route{"POST", "/apply-template", kUser, apply_template, "The prompt that messages make",
          "tokens"},
    Route{"GET", "/props", kUser, props, "Settings, as llama.cpp names them", "server"},
    Route{"GET", "/health", kOpen, health, "Whether the server works", "server"},
    Route{"GET", "/v1/health", kOpen, health, "Whether the server works", "server"},
    Route{"GET", "/ping", kOpen, ping, "Whether the server is there", "server"},
    Route{"GET", "/version", kOpen, version, "The program's version", "server"},
    Route{"GET", "/.well-known/serviceinfo", kOpen, serviceinfo, "What is served", "server"},
    Route{"GET", "/openapi.json", kOpen, openapi, "This document", "server"},
    Route{"GET", "/", kOpen, web_page, "The chat page", "page"},
    Route{"GET", "/app.js", kOpen, web_file, "Part of the chat page", "page"},
    Route{"GET", "/markdown.js", kOpen, web_file, "Part of the chat page", "page"},
    Route{"GET", "/style.css", kOpen, web_file, "Part of the chat page", "page"},
    Route{"GET", "/metrics", kOpen, metrics, "Counters for Prometheus", "server"},
};

// Rest of `path` where `pattern` ends in '*', or nothing if they do not fit.
bool fits(std::string_view pattern, std::string_view path, std::string& tail) {
    const size_t star = pattern.find('*');
    if (star == std::string_view::npos) return pattern == path;
    const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
    if (path.size() <= before.size() + after.size() || !path.starts_with(before) ||
        !path.ends_with(after))
        return false;
    const std::string_view middle =
        path.substr(before.size(), path.size() - before.size() - after.size());
    // A name in the middle is one part of the path; at the end it may hold slashes.
    if (!after.empty() && middle.find('/') != std::string_view::npos) return false;
    tail = std::string(middle);
    return true;
}

RouteMatch find_exactly(std::string_view method, std::string_view path) {
    RouteMatch match;
    const std::string_view wanted = method == "HEAD" ? "GET" : method;
    for (const Route& r : kRoutes) {
        std::string tail;
        if (!fits(r.path, path, tail)) continue;
        match.path_exists = true;
        match.allow += (match.allow.empty() ? "" : ", ") + std::string(r.method);
        if (r.method != wanted || match.route) continue;
        match.route = &r;
        match.tail = std::move(tail);
    }
    return match;
}

}  // namespace

std::span<const Route> routes() {
    return kRoutes;
}

RouteMatch find_route(std::string_view method, std::string_view path) {
    RouteMatch match = find_exactly(method, path);
    if (match.path_exists || path.starts_with("/v1/") || path == "/") return match;
    return find_exactly(method, "/v1" + std::string(path));
}

}  // namespace exl3::server
