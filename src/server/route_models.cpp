// Models: what there is, loading and unloading.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "api/fields.h"
#include "server/routes.h"

namespace exl3::server {
namespace {

using api::ApiError;
using api::Family;

std::string rfc3339(int64_t seconds) {
    const std::time_t t = seconds;
    std::tm parts{};
    ::gmtime_r(&t, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900,
                       parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

struct Entry {
    std::string id;
    int64_t created = 0;
    const LoadedModel* loaded = nullptr;
};

Json entry_json(const Entry& e, Family family) {
    if (family == Family::anthropic)
        return {{"type", "model"},
                {"id", e.id},
                {"display_name", e.id},
                {"created_at", rfc3339(e.created)}};
    Json j = {{"id", e.id},
              {"object", "model"},
              {"created", e.created},
              {"owned_by", "exl3"},
              {"status", {{"value", e.loaded ? "loaded" : "unloaded"}}}};
    if (e.loaded) {
        const int64_t context = e.loaded->generator->max_context();
        j["max_model_len"] = context;
        j["context_length"] = context;
        j["meta"] = {{"n_ctx", context},
                     {"n_ctx_train", e.loaded->model->spec().max_positions},
                     {"n_vocab", e.loaded->tokenizer.vocab_size()},
                     {"n_embd", e.loaded->model->spec().hidden}};
    }
    return j;
}

// Administrators see every model there is, others the one that answers.
std::vector<Entry> entries(const Service& service, const LoadedModel* loaded, Access access) {
    std::vector<Entry> all;
    if (loaded) {
        all.push_back({loaded->id, loaded->created, loaded});
        for (const std::string& alias : service.config().model.aliases)
            all.push_back({alias, loaded->created, loaded});
    }
    if (access != Access::admin) return all;
    for (const std::string& name : service.available())
        if (std::none_of(all.begin(), all.end(), [&](const Entry& e) { return e.id == name; }))
            all.push_back({name, 0, nullptr});
    return all;
}

// Settings of a load request over those of the server.
ServerConfig load_settings(const Service& service, const api::Fields& f) {
    ServerConfig c = service.config();
    if (const auto v = f.integer({"max_seq_len"}, -1, int64_t{1} << 31); v && *v > 0)
        c.model.max_seq_len = *v;
    if (const auto v = f.integer({"cache_size"}, 1, int64_t{1} << 33)) c.model.cache_size = *v;
    if (const auto v = f.text({"cache_mode"})) {
        c.model.cache_mode = *v;
        read_cache_mode(*v);
    }
    if (const auto v = f.integer({"chunk_size"}, 256, 65536))
        c.model.chunk_size = static_cast<int>(*v);
    if (const auto v = f.text({"prompt_template"})) c.model.prompt_template = *v;
    if (f.flag({"vision"}).value_or(false))
        f.fail("vision", "found true, this build sees no images");
    if (f.object({"draft_model"})) f.fail("draft_model", "this build loads no draft models");
    return c;
}

Json progress_json(int module, int modules, const char* status) {
    return {{"model_type", "model"}, {"module", module}, {"modules", modules}, {"status", status}};
}

}  // namespace

void list_models(Service& service, const Call& call) {
    const auto model = service.model();
    Json data = Json::array();
    for (const Entry& e : entries(service, model.get(), call.access))
        data.push_back(entry_json(e, call.family));
    if (call.family == Family::openai)
        return call.reply(200, {{"object", "list"}, {"data", std::move(data)}});
    const Json first = data.empty() ? Json() : data.front()["id"];
    const Json last = data.empty() ? Json() : data.back()["id"];
    call.reply(
        200,
        {{"data", std::move(data)}, {"has_more", false}, {"first_id", first}, {"last_id", last}});
}

void get_model(Service& service, const Call& call) {
    const auto model = service.model();
    for (const Entry& e : entries(service, model.get(), call.access))
        if (e.id == call.tail) return call.reply(200, entry_json(e, call.family));
    throw ApiError(404, fmt::format("there is no model '{}'", call.tail), "model",
                   "model_not_found");
}

void model_card(Service& service, const Call& call) {
    const auto model = service.model_for("", call.access);
    const int64_t context = model->generator->max_context();
    const auto& m = service.config().model;
    auto jinja = model->templates.select(false);
    const Json name = jinja ? Json(jinja->name()) : Json();
    const Json source = jinja ? Json(jinja->source()) : Json();
    call.reply(200, {{"id", model->id},
                     {"object", "model"},
                     {"created", model->created},
                     {"owned_by", "exl3"},
                     {"logging", nullptr},
                     {"parameters",
                      {{"max_seq_len", context},
                       {"cache_size", model->cache_tokens},
                       {"cache_mode", m.cache_mode},
                       {"rope_scale", 1.0},
                       {"rope_alpha", 1.0},
                       {"max_batch_size", m.max_batch_size},
                       {"chunk_size", m.chunk_size},
                       {"prompt_template", name},
                       {"prompt_template_content", source},
                       {"tool_format", std::string(model->traits.output.tools->name)},
                       {"use_vision", false},
                       {"draft", nullptr}}}});
}

void load_model(Service& service, const Call& call) {
    const Json body = api::parse_body(call.request().body);
    const api::Fields f(body, "");
    const std::string name = f.text({"model_name", "name", "model"}).value_or("");
    if (name.empty()) f.fail("model_name", "missing, needed the name of a folder");
    service.find_folder(name, false);
    const ServerConfig settings = load_settings(service, f);
    const bool stream = f.flag({"stream"}).value_or(true);
    if (f.flag({"skip_queue"}).value_or(false)) service.cancel_running();
    if (!stream) {
        service.load(name, settings, {});
        return call.reply(200, progress_json(1, 1, "finished"));
    }
    const auto exchange = call.exchange;
    exchange->begin_events(": ping\n\n");
    int last = 0, modules = 1;
    try {
        // The loading goes on if the client leaves.
        service.load(name, settings, [&](int done, int total) {
            if (done == last && total == modules) return;
            last = done;
            modules = total;
            exchange->write(api::sse(progress_json(done, total, "processing")));
        });
        exchange->write(api::sse(progress_json(modules, modules, "finished")));
    } catch (const Error& e) {
        exchange->write(api::sse({{"error", {{"message", e.what()}, {"trace", ""}}}}));
    }
    exchange->end();
}

void unload_model(Service& service, const Call& call) {
    if (!service.unload()) throw ApiError(503, "No models are currently loaded.");
    call.reply(200, nullptr);
}

void list_templates(Service& service, const Call& call) {
    const auto model = service.model_for("", call.access);
    Json names = Json::array();
    for (const std::string& name : model->templates.names()) names.push_back(name);
    call.reply(200, {{"object", "list"}, {"data", std::move(names)}});
}

void auth_permission(Service&, const Call& call) {
    call.reply(200, {{"permission", call.access == Access::admin ? "admin" : "api"}});
}

void props(Service& service, const Call& call) {
    const auto model = service.model_for("", call.access);
    auto jinja = model->templates.select(false);
    const Json& special = model->templates.special_tokens();
    call.reply(200, {{"total_slots", service.config().model.max_batch_size},
                     {"chat_template", jinja ? Json(jinja->source()) : Json("")},
                     {"default_generation_settings", {{"n_ctx", model->generator->max_context()}}},
                     {"model_path", model->folder.string()},
                     {"modalities", {{"vision", false}, {"audio", false}}},
                     {"bos_token", special.value("bos_token", "")},
                     {"eos_token", special.value("eos_token", "")},
                     {"build_info", model->fingerprint}});
}

}  // namespace exl3::server
