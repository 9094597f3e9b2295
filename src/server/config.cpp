#include "server/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cctype>
#include <cstdlib>
#include <variant>

#include "api/fields.h"
#include "base/error.h"
#include "base/log.h"

namespace exl3::server {
namespace {

using Texts = std::vector<std::string>;

// YAML scalars are text; JSON has types.
Json to_json(const YAML::Node& node) {
    if (node.IsMap()) {
        Json object = Json::object();
        for (const auto& member : node)
            object[member.first.as<std::string>()] = to_json(member.second);
        return object;
    }
    if (node.IsSequence()) {
        Json list = Json::array();
        for (const auto& item : node) list.push_back(to_json(item));
        return list;
    }
    if (node.IsNull()) return nullptr;
    const std::string text = node.as<std::string>();
    if (node.Tag() == "!") return text;  // it was quoted
    bool flag = false;
    if (YAML::convert<bool>::decode(node, flag)) return flag;
    auto number = parse_json(text, "number");
    return number && number->is_number() ? std::move(*number) : Json(text);
}

void read_value(const YAML::Node& node, std::string& v) {
    v = node.IsNull() ? "" : node.as<std::string>();
}
void read_value(const YAML::Node& node, bool& v) {
    v = node.as<bool>();
}
void read_value(const YAML::Node& node, int& v) {
    v = node.as<int>();
}
void read_value(const YAML::Node& node, int64_t& v) {
    v = node.as<int64_t>();
}
void read_value(const YAML::Node& node, double& v) {
    v = node.as<double>();
}
void read_value(const YAML::Node& node, Json& v) {
    v = node.IsNull() ? Json::object() : to_json(node);
}
void read_value(const YAML::Node& node, Texts& v) {
    if (node.IsNull())
        v.clear();
    else if (node.IsScalar())
        v = {node.as<std::string>()};
    else
        v = node.as<Texts>();
}

std::string show_value(const std::string& v) {
    return api::to_text(Json(v));
}
std::string show_value(bool v) {
    return v ? "true" : "false";
}
std::string show_value(int v) {
    return std::to_string(v);
}
std::string show_value(int64_t v) {
    return std::to_string(v);
}
std::string show_value(double v) {
    return fmt::format("{}", v);
}
std::string show_value(const Json& v) {
    return api::to_text(v);
}
std::string show_value(const Texts& v) {
    return api::to_text(Json(v));
}

struct Option : ConfigOption {
    std::function<void(const YAML::Node&, ServerConfig&)> read;
};

// What an integer or a number may be, and the words a text may be.
struct Range {
    double least = 0, greatest = 1e18;
};

template <typename S, typename T>
Option make(S ServerConfig::*section, const char* section_name, T S::*field, const char* key,
            const char* help, Range range = {}, const Texts& words = {}) {
    Option o;
    o.section = section_name;
    o.key = key;
    o.help = help;
    o.show = [=](const ServerConfig& c) { return show_value((c.*section).*field); };
    o.read = [=](const YAML::Node& node, ServerConfig& c) {
        T value = (c.*section).*field;
        read_value(node, value);
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
            if (!(static_cast<double>(value) >= range.least &&
                  static_cast<double>(value) <= range.greatest))
                throw Error(
                    Errc::invalid_argument, {},
                    fmt::format("found {}, needed {} to {}", value, range.least, range.greatest));
        if constexpr (std::is_same_v<T, std::string>)
            if (!words.empty() && std::find(words.begin(), words.end(), value) == words.end())
                throw Error(Errc::invalid_argument, {},
                            fmt::format("found '{}', needed {}", value, fmt::join(words, ", ")));
        (c.*section).*field = std::move(value);
    };
    return o;
}

const std::vector<Option>& table() {
    using C = ServerConfig;
    using N = C::Network;
    using M = C::Model;
    constexpr auto net = &C::network;
    constexpr auto mod = &C::model;
    static const std::vector<Option> all = {
        make(net, "network", &N::host, "host",
             "Address to listen on; 0.0.0.0 for all of IPv4, '::' for all"),
        make(net, "network", &N::port, "port", "Port to listen on; 0 takes a free one", {0, 65535}),
        make(net, "network", &N::disable_auth, "disable_auth",
             "Ask for no keys: everybody is an administrator"),
        make(net, "network", &N::api_keys, "api_keys",
             "Keys for the generating routes. Without any key nobody is asked for one"),
        make(net, "network", &N::admin_keys, "admin_keys", "Keys that also load and unload models"),
        make(net, "network", &N::keys_file, "keys_file",
             "YAML file with api_key and admin_key, made with random keys if missing, read again "
             "when it changes"),
        make(net, "network", &N::cors_origins, "cors_origins",
             "Origins whose pages may call the server; '*' for all, empty for none"),
        make(net, "network", &N::max_body_mb, "max_body_mb", "Largest request body, MiB",
             {0.001, 4096}),
        make(net, "network", &N::max_header_kb, "max_header_kb", "Largest request header, KiB",
             {4, 1024}),
        make(net, "network", &N::max_connections, "max_connections",
             "Connections open at once; later ones get 503", {1, 1000000}),
        make(net, "network", &N::max_queue, "max_queue",
             "Jobs that may wait for room; later ones get 429. 0: any number", {0, 1000000}),
        make(net, "network", &N::idle_timeout, "idle_timeout",
             "Seconds a connection may be silent between requests", {0.1, 86400}),
        make(net, "network", &N::read_timeout, "read_timeout",
             "Seconds a request may take to arrive", {0.1, 86400}),
        make(net, "network", &N::write_timeout, "write_timeout",
             "Seconds a client may take nothing before it is dropped and its job ends",
             {0.1, 86400}),
        make(net, "network", &N::sse_ping_interval, "sse_ping_interval",
             "Seconds of silence in a stream after which a comment keeps it open; 0: never",
             {0, 86400}),
        make(net, "network", &N::shutdown_grace, "shutdown_grace",
             "Seconds that running answers have to end after SIGTERM; then they are cancelled",
             {0, 86400}),
        make(net, "network", &N::web_page, "web_page", "Serve the chat page at /"),
        make(&C::logging, "logging", &C::Logging::log_requests, "log_requests",
             "A line for each request"),
        make(&C::logging, "logging", &C::Logging::log_prompt, "log_prompt",
             "The rendered prompt of each request, at level debug"),
        make(mod, "model", &M::model_name, "model_name",
             "Model loaded at the start: a folder, or a name in model_dir"),
        make(mod, "model", &M::model_dir, "model_dir",
             "Folder of the models that can be loaded by name"),
        make(mod, "model", &M::aliases, "aliases", "Further names of the loaded model"),
        make(mod, "model", &M::model_name_policy, "model_name_policy",
             "A request that names another model: 'ignore' answers with the loaded one, 'strict' "
             "is a 404",
             {}, {"ignore", "strict"}),
        make(mod, "model", &M::inline_model_loading, "inline_model_loading",
             "An administrator's request that names another model in model_dir loads it"),
        make(mod, "model", &M::max_seq_len, "max_seq_len",
             "Tokens of one conversation; 0: what the model was made for. At most cache_size",
             {0, 1e9}),
        make(mod, "model", &M::cache_size, "cache_size",
             "Tokens in the cache that all conversations share; 0: max_seq_len, from 8192 to 32768",
             {0, 1e10}),
        make(mod, "model", &M::cache_mode, "cache_mode",
             "How keys and values are kept: FP16, Q8, Q6, Q4, or bits of keys and values as 'K,V'"),
        make(mod, "model", &M::chunk_size, "chunk_size",
             "Prompt tokens read per step, a multiple of 256", {256, 65536}),
        make(mod, "model", &M::max_batch_size, "max_batch_size", "Jobs that run at once",
             {1, 4096}),
        make(mod, "model", &M::prompt_template, "prompt_template",
             "File of a chat template to use instead of the model's"),
        make(mod, "model", &M::inline_templates, "inline_templates",
             "Requests may bring a chat template (a program) of their own"),
        make(mod, "model", &M::template_vars_default, "template_vars_default",
             "Template variables that requests may override"),
        make(mod, "model", &M::template_vars_force, "template_vars_force",
             "Template variables that requests may not override"),
        make(mod, "model", &M::reasoning, "reasoning", "Tell reasoning from the answer"),
        make(mod, "model", &M::reasoning_start_token, "reasoning_start_token",
             "Tag that begins reasoning; empty: found from the template"),
        make(mod, "model", &M::reasoning_end_token, "reasoning_end_token",
             "Tag that ends reasoning; empty: found from the template"),
        make(mod, "model", &M::start_in_reasoning, "start_in_reasoning",
             "Whether answers begin inside reasoning: 'auto' looks at the prompt", {},
             {"auto", "always", "never"}),
        make(mod, "model", &M::tool_calls_in_reasoning, "tool_calls_in_reasoning",
             "Calls inside reasoning are calls"),
        make(mod, "model", &M::tool_format, "tool_format",
             "How the model writes tool calls (hermes, qwen3_coder, mistral, llama3_json, ...); "
             "empty: found from the template"),
        make(&C::sampling, "sampling", &C::Sampling::defaults, "defaults",
             "What counts where a request is silent: 'model' (generation_config.json) or 'neutral'",
             {}, {"model", "neutral"}),
        make(&C::sampling, "sampling", &C::Sampling::max_choices, "max_choices",
             "Largest n of a request", {1, 4096}),
        make(&C::metrics, "metrics", &C::Metrics::enabled, "enabled", "Serve /metrics"),
        make(&C::metrics, "metrics", &C::Metrics::require_key, "require_key",
             "Ask for a key there"),
    };
    return all;
}

const Option* find(const std::string& section, const std::string& key) {
    for (const Option& o : table())
        if (o.section == section && o.key == key) return &o;
    return nullptr;
}

bool known_section(const std::string& name) {
    for (const Option& o : table())
        if (o.section == name) return true;
    return false;
}

void read_option(const Option& o, const YAML::Node& node, const std::string& name,
                 ServerConfig& config) {
    const auto fail = [&](std::string_view what) {
        throw Error(
            Errc::invalid_file, {name, {}, {}},
            fmt::format("line {}: {}.{}: {}", node.Mark().line + 1, o.section, o.key, what));
    };
    try {
        o.read(node, config);
    } catch (const YAML::Exception&) {
        fail(fmt::format("found a value of the wrong kind, needed one like {}",
                         o.show(ServerConfig{})));
    } catch (const Error& e) {
        fail(e.what());
    }
}

void read_tree(const YAML::Node& root, const std::string& name, ServerConfig& config) {
    if (root.IsNull()) return;
    if (!root.IsMap())
        throw Error(Errc::invalid_file, {name, {}, {}},
                    "found no sections, needed 'network:' etc.");
    for (const auto& section : root) {
        const auto section_name = section.first.as<std::string>();
        if (!known_section(section_name) || section.second.IsNull()) {
            if (!known_section(section_name))
                log(LogLevel::warn, "{}: section '{}' is unknown and ignored", name, section_name);
            continue;
        }
        if (!section.second.IsMap())
            throw Error(
                Errc::invalid_file, {name, {}, {}},
                fmt::format("section '{}': found no keys, needed 'key: value'", section_name));
        for (const auto& member : section.second) {
            const auto key = member.first.as<std::string>();
            if (const Option* o = find(section_name, key))
                read_option(*o, member.second, name, config);
            else
                log(LogLevel::warn, "{}: '{}.{}' is unknown and ignored", name, section_name, key);
        }
    }
}

}  // namespace

const std::vector<ConfigOption>& config_options() {
    static const std::vector<ConfigOption> all(table().begin(), table().end());
    return all;
}

void read_config_text(const std::string& yaml, const std::string& name, ServerConfig& config) {
    YAML::Node root;
    try {
        root = YAML::Load(yaml);
    } catch (const YAML::Exception& e) {
        throw Error(Errc::invalid_file, {name, {}, {}}, fmt::format("{}: needed YAML", e.what()));
    }
    read_tree(root, name, config);
}

void read_config(const std::filesystem::path& file, ServerConfig& config) {
    YAML::Node root;
    try {
        root = YAML::LoadFile(file);
    } catch (const YAML::BadFile&) {
        throw Error(Errc::io, {file, {}, {}}, "could not be read, needed a YAML file");
    } catch (const YAML::Exception& e) {
        throw Error(Errc::invalid_file, {file, {}, {}}, fmt::format("{}: needed YAML", e.what()));
    }
    read_tree(root, file, config);
}

void read_config_environment(ServerConfig& config) {
    for (const Option& o : table()) {
        std::string name = "EXL3_" + o.section + "_" + o.key;
        for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        if (const char* value = std::getenv(name.c_str()))
            read_option(o, YAML::Load(value), name, config);
    }
}

std::string write_config(const ServerConfig& config) {
    std::string out = "# Options of exl3 serve, with their values.\n", section;
    for (const Option& o : table()) {
        if (o.section != section) out += fmt::format("\n{}:\n", o.section);
        section = o.section;
        out += fmt::format("  # {}.\n  {}: {}\n", o.help, o.key, o.show(config));
    }
    return out;
}

}  // namespace exl3::server
