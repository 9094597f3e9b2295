#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "api/fields.h"
#include "base/log.h"
#include "server/response_store.h"
#include "server/routes.h"

namespace exl3::server {
namespace {

using api::ApiError;
using api::Family;

ApiError forbidden(const HttpRequest& request, Access access) {
    if (access == Access::nobody)
        return {401, "found no valid key, needed 'Authorization: Bearer KEY' or 'x-api-key: KEY'",
                "", "invalid_api_key"};
    return {403, fmt::format("{} {} needs an admin key", request.method, request.path)};
}

// What a request that no route answers gets.
ApiError no_route(const HttpRequest& request, const RouteMatch& match) {
    if (match.path_exists)
        return {405, fmt::format("{} does not take {}, it takes {}", request.path, request.method,
                                 match.allow)};
    return {404, fmt::format("there is no {}", request.path), "", "not_found"};
}

}  // namespace

Family family_of(const HttpRequest& request) {
    const bool messages =
        request.path.starts_with("/v1/messages") || request.path.starts_with("/messages");
    const bool models =
        request.path.starts_with("/v1/models") && !request.header("anthropic-version").empty();
    return messages || models ? Family::anthropic : Family::openai;
}

HttpReply json_reply(int status, const Json& body) {
    return {status, "application/json", api::to_text(body), {}};
}

HttpReply error_reply(const ApiError& error, Family family, const std::string& id) {
    HttpReply r = json_reply(error.status(), api::error_body(error, family, id));
    if (error.status() == 503 || error.status() == 429) r.headers.emplace_back("Retry-After", "1");
    if (error.status() == 401) r.headers.emplace_back("WWW-Authenticate", "Bearer");
    return r;
}

void Call::reply(int status, const Json& body) const {
    exchange->reply(json_reply(status, body));
}

Service::Service(ServerConfig config, Device device)
    : config_(std::move(config)),
      device_(std::move(device)),
      keys_(config_.network.disable_auth ? std::vector<std::string>{} : config_.network.api_keys,
            config_.network.disable_auth ? std::vector<std::string>{} : config_.network.admin_keys,
            config_.network.disable_auth ? "" : config_.network.keys_file),
      responses_(std::make_unique<ResponseStore>()) {}

Service::~Service() = default;

HttpHandler Service::handler() {
    HttpHandler h;
    h.admit = [this](const HttpRequest& head, HttpReply& refusal) { return admit(head, refusal); };
    h.handle = [this](const std::shared_ptr<Exchange>& exchange) { handle(exchange); };
    h.refuse = [this](const HttpRequest& head, int status, std::string_view what) {
        return error_reply(ApiError(status, std::string(what)), family_of(head), head.id);
    };
    h.decorate = [this](const HttpRequest& request, Headers& headers) {
        add_cors(request, headers);
    };
    h.done = [this](const HttpRequest& request, int status, double seconds) {
        const RouteMatch match = find_route(request.method, request.path);
        metrics_.http_done(match.route ? match.route->path : "other", status, seconds);
        if (config_.logging.log_requests)
            log(LogLevel::info, "{} {} {} {} {:.1f} ms {}", request.remote, request.method,
                request.path, status, seconds * 1e3, request.id);
    };
    return h;
}

// Which page may read the answer. "*" never comes with credentials.
void Service::add_cors(const HttpRequest& request, Headers& headers) const {
    const auto& allowed = config_.network.cors_origins;
    const std::string origin(request.header("origin"));
    const bool any = std::find(allowed.begin(), allowed.end(), "*") != allowed.end();
    if (!any &&
        (origin.empty() || std::find(allowed.begin(), allowed.end(), origin) == allowed.end()))
        return;
    headers.emplace_back("Access-Control-Allow-Origin", any ? "*" : origin);
    if (!any) headers.emplace_back("Vary", "Origin");
    headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id");
    if (request.method != "OPTIONS") return;
    const std::string_view asked = request.header("access-control-request-headers");
    const bool plain =
        std::all_of(asked.begin(), asked.end(), [](char c) { return c >= ' ' && c < 0x7f; });
    headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    headers.emplace_back(
        "Access-Control-Allow-Headers",
        asked.empty() || !plain ? "Authorization, Content-Type, x-api-key" : std::string(asked));
    headers.emplace_back("Access-Control-Max-Age", "86400");
}

bool Service::admit(const HttpRequest& head, HttpReply& refusal) {
    if (head.method == "OPTIONS") {
        refusal = {204, "", "", {{"Allow", "GET, HEAD, POST, DELETE, OPTIONS"}}};
        return false;
    }
    const Family family = family_of(head);
    const auto refuse = [&](const ApiError& error) {
        refusal = error_reply(error, family, head.id);
        return false;
    };
    const RouteMatch match = find_route(head.method, head.path);
    if (!match.route) {
        refuse(no_route(head, match));
        if (match.path_exists) refusal.headers.emplace_back("Allow", match.allow);
        return false;
    }
    const Access access = keys_.access(head);
    Access needed = match.route->access;
    if (head.path == "/metrics" && config_.metrics.require_key) needed = Access::user;
    if (access < needed) return refuse(forbidden(head, access));
    if (stopping_ && needed != Access::nobody)
        return refuse(ApiError(503, "the server is shutting down"));
    return true;
}

void Service::handle(const std::shared_ptr<Exchange>& exchange) {
    Call call{exchange, keys_.access(exchange->request()), family_of(exchange->request()), {}};
    const auto refuse = [&](const ApiError& error) {
        HttpReply r = error_reply(error, call.family, exchange->request().id);
        exchange->reply(std::move(r));
    };
    try {
        const RouteMatch match = find_route(call.request().method, call.request().path);
        call.tail = match.tail;
        match.route->run(*this, call);
    } catch (const ApiError& e) {
        refuse(e);
    } catch (const Error& e) {
        refuse(api::from_error(e));
    } catch (const std::bad_alloc&) {
        refuse(ApiError(503, "the system gave no more memory"));
    } catch (const std::exception& e) {
        log(LogLevel::error, "{} {}: {}", call.request().method, call.request().path, e.what());
        refuse(ApiError(500, "internal error"));
    }
}

std::shared_ptr<LoadedModel> Service::model() const {
    const std::lock_guard lock(model_mutex_);
    return model_;
}

std::shared_ptr<LoadedModel> Service::model_for(const std::string& name, Access access) {
    auto loaded = model();
    const auto& aliases = config_.model.aliases;
    const bool same = name.empty() || (loaded && name == loaded->id) ||
                      std::find(aliases.begin(), aliases.end(), name) != aliases.end();
    if (!same && config_.model.inline_model_loading && access == Access::admin) {
        const auto names = available();
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw ApiError(404, fmt::format("there is no model '{}'", name), "model",
                           "model_not_found");
        loaded.reset();  // load() waits until nobody uses the old model
        load(name);
        loaded = model();
    } else if (!same && loaded && config_.model.model_name_policy == "strict") {
        throw ApiError(404, fmt::format("model '{}' is not loaded; '{}' is", name, loaded->id),
                       "model", "model_not_found");
    }
    if (!loaded)
        throw ApiError(503, loading_ ? "Loading model" : "No models are currently loaded.");
    return loaded;
}

std::vector<std::string> Service::available() const {
    std::vector<std::string> names;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(config_.model.model_dir, ec))
        if (std::filesystem::exists(entry.path() / "config.json", ec))
            names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

std::filesystem::path Service::find_folder(const std::string& name, bool paths) const {
    const std::filesystem::path below = std::filesystem::path(config_.model.model_dir) / name;
    const bool plain =
        !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
    if (plain && std::filesystem::is_directory(below)) return below;
    if (paths) return name;
    throw ApiError(400,
                   fmt::format("model_name: found '{}', needed the name of a folder in {}", name,
                               config_.model.model_dir),
                   "model_name");
}

void Service::load(const std::string& name, const LoadProgress& progress) {
    load(name, config_, progress);
}

void Service::load(const std::string& name, const ServerConfig& with,
                   const LoadProgress& progress) {
    const std::lock_guard serial(load_mutex_);
    const auto folder = find_folder(name, true);
    if (!std::filesystem::is_directory(folder))
        throw Error(Errc::invalid_argument, {folder, {}, {}}, "no such folder, needed a model's");
    loading_ = true;
    struct Done {
        std::atomic<bool>& flag;
        ~Done() { flag = false; }
    } done{loading_};
    release_model();
    auto fresh =
        std::make_shared<LoadedModel>(folder, device_.name, device_.options, with, progress);
    log(LogLevel::info, "loaded {} in {:.1f} s: {} tokens of cache, {} per conversation", fresh->id,
        fresh->load_seconds, fresh->cache_tokens, fresh->generator->max_context());
    const std::lock_guard lock(model_mutex_);
    model_ = std::move(fresh);
}

// Lets the model go, and waits for the requests that it still answers: two would not fit.
void Service::release_model() {
    std::weak_ptr<LoadedModel> old;
    {
        const std::lock_guard lock(model_mutex_);
        old = model_;
        model_.reset();
    }
    while (!old.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

bool Service::unload() {
    const std::lock_guard serial(load_mutex_);
    if (!model()) return false;
    cancel_running();
    release_model();
    return true;
}

uint64_t Service::add_running(std::function<void()> cancel) {
    const std::lock_guard lock(running_mutex_);
    running_.emplace(++next_running_, std::move(cancel));
    return next_running_;
}

void Service::remove_running(uint64_t number) {
    const std::lock_guard lock(running_mutex_);
    running_.erase(number);
}

void Service::cancel_running() {
    const std::lock_guard lock(running_mutex_);
    for (const auto& [number, cancel] : running_) cancel();
}

api::RequestDefaults Service::defaults(const LoadedModel& model) const {
    api::RequestDefaults d;
    d.sampler = model.sampler;
    d.vocab = model.tokenizer.vocab_size();
    d.max_choices = config_.sampling.max_choices;
    d.template_vars = config_.model.template_vars_default;
    d.template_vars_forced = config_.model.template_vars_force;
    d.inline_templates = config_.model.inline_templates;
    return d;
}

}  // namespace exl3::server
