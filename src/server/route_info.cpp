// What is known without a key: health, version, metrics.
#include <fmt/format.h>

#include <chrono>

#include "exl3_version.h"
#include "server/routes.h"
#include "server/web_files.h"

namespace exl3::server {
namespace {

// A loop that has not come around for so long while jobs run hangs.
constexpr double kDeadSeconds = 60;

std::string trouble(const GeneratorStats& stats) {
    const std::chrono::duration<double> silent = std::chrono::steady_clock::now() - stats.heartbeat;
    if (stats.running > 0 && silent.count() > kDeadSeconds)
        return fmt::format("the decode loop has been silent for {:.0f} s", silent.count());
    if (!stats.healthy) return "the last pass through the model failed";
    return {};
}

std::string_view type_of(std::string_view name) {
    if (name.ends_with(".html")) return "text/html; charset=utf-8";
    if (name.ends_with(".css")) return "text/css; charset=utf-8";
    return "text/javascript; charset=utf-8";
}

// The page runs its own scripts alone and talks to this server alone.
void send_file(Service& service, const Call& call, std::string_view name) {
    if (service.config().network.web_page)
        for (const WebFile& f : web_files())
            if (f.name == name) {
                call.exchange->reply(
                    {200,
                     std::string(type_of(name)),
                     std::string(reinterpret_cast<const char*>(f.bytes), f.size),
                     {{"Cache-Control", "no-cache"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Content-Security-Policy",
                       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
                       "'self'; "
                       "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors "
                       "'none'"}}});
                return;
            }
    throw api::ApiError(404, fmt::format("there is no {}", call.request().path), "", "not_found");
}

}  // namespace

void health(Service& service, const Call& call) {
    const auto model = service.model();
    if (!model) {
        if (service.loading())
            return call.reply(
                503,
                {{"status", "loading"},
                 {"issues", Json::array()},
                 {"error",
                  {{"code", 503}, {"message", "Loading model"}, {"type", "unavailable_error"}}}});
        return call.reply(200,
                          {{"status", "healthy"}, {"issues", Json::array()}, {"model", nullptr}});
    }
    const GeneratorStats stats = model->generator->stats();
    const std::string problem = trouble(stats);
    Json issues = Json::array();
    if (!problem.empty())
        issues.push_back({{"time", std::chrono::duration_cast<std::chrono::seconds>(
                                       std::chrono::system_clock::now().time_since_epoch())
                                       .count()},
                          {"description", problem}});
    call.reply(problem.empty() ? 200 : 503, {{"status", problem.empty() ? "healthy" : "unhealthy"},
                                             {"issues", std::move(issues)},
                                             {"model", model->id},
                                             {"running", stats.running},
                                             {"waiting", stats.waiting}});
}

void ping(Service&, const Call& call) {
    call.reply(200, {{"status", "ok"}});
}

void version(Service&, const Call& call) {
    call.reply(200, {{"version", EXL3_VERSION}, {"commit", EXL3_COMMIT}});
}

void serviceinfo(Service&, const Call& call) {
    call.reply(200, {{"version", 0.1},
                     {"software",
                      {{"name", "exl3"},
                       {"version", EXL3_VERSION},
                       {"repository", nullptr},
                       {"homepage", nullptr}}},
                     {"api",
                      {{"openai",
                        {{"name", "OpenAI API"},
                         {"relative_url", "/v1"},
                         {"documentation", "/openapi.json"},
                         {"version", 1}}},
                       {"anthropic",
                        {{"name", "Anthropic API"},
                         {"relative_url", "/v1/messages"},
                         {"documentation", "/openapi.json"},
                         {"version", 1}}}}}});
}

void metrics(Service& service, const Call& call) {
    if (!service.config().metrics.enabled) throw api::ApiError(404, "metrics are switched off");
    const auto model = service.model();
    if (!model) {
        call.exchange->reply({200,
                              "text/plain; version=0.0.4; charset=utf-8",
                              service.metrics().text("", nullptr),
                              {}});
        return;
    }
    const GeneratorStats stats = model->generator->stats();
    call.exchange->reply({200,
                          "text/plain; version=0.0.4; charset=utf-8",
                          service.metrics().text(model->id, &stats),
                          {}});
}

void web_page(Service& service, const Call& call) {
    send_file(service, call, "index.html");
}

void web_file(Service& service, const Call& call) {
    send_file(service, call, std::string_view(call.request().path).substr(1));
}

void openapi(Service&, const Call& call) {
    call.reply(200, openapi_document());
}

}  // namespace exl3::server
