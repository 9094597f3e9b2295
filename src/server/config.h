#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace exl3::server {

/// Everything that can be set about the server. Names and sections are those of the YAML file;
/// config_options() describes each.
struct ServerConfig {
    struct Network {
        std::string host = "127.0.0.1";
        int port = 8080;
        bool disable_auth = false;
        std::vector<std::string> api_keys, admin_keys;
        std::string keys_file;
        std::vector<std::string> cors_origins = {"*"};
        double max_body_mb = 64;
        int max_header_kb = 64;
        int max_connections = 4096;
        int max_queue = 256;
        double idle_timeout = 75, read_timeout = 60, write_timeout = 60;  // seconds
        double sse_ping_interval = 15;                                    // seconds
        double shutdown_grace = 30;                                       // seconds
        bool web_page = true;
    } network;
    struct Logging {
        bool log_requests = false;
        bool log_prompt = false;
    } logging;
    struct Model {
        std::string model_name;  ///< a folder, or a name below model_dir
        std::string model_dir = "models";
        std::vector<std::string> aliases;
        std::string model_name_policy = "ignore";
        bool inline_model_loading = false;
        int64_t max_seq_len = 0;
        int64_t cache_size = 0;
        std::string cache_mode = "FP16";
        int chunk_size = 512;
        int max_batch_size = 64;
        std::string prompt_template;
        bool inline_templates = false;
        Json template_vars_default = Json::object(), template_vars_force = Json::object();
        bool reasoning = true;
        std::string reasoning_start_token, reasoning_end_token;
        std::string start_in_reasoning = "auto";
        bool tool_calls_in_reasoning = true;
        std::string tool_format;
    } model;
    struct Sampling {
        std::string defaults = "model";
        int max_choices = 128;
    } sampling;
    struct Metrics {
        bool enabled = true;
        bool require_key = false;
    } metrics;
};

/// An option of the file: "network.port".
struct ConfigOption {
    std::string section, key;
    std::string help;
    std::function<std::string(const ServerConfig&)> show;  ///< its value as YAML
};
/// Every option, in the order of the file.
const std::vector<ConfigOption>& config_options();

/// Reads a file over `config`. Keys it does not have stay as they are; unknown ones are warned
/// about. Throws Error{invalid_file} naming file, key and line for values of the wrong kind.
void read_config(const std::filesystem::path& file, ServerConfig& config);
/// The same for text, and for its environment: EXL3_NETWORK_PORT=1 sets network.port.
void read_config_text(const std::string& yaml, const std::string& name, ServerConfig& config);
void read_config_environment(ServerConfig& config);
/// A file with every option, its description and its value here.
std::string write_config(const ServerConfig& config);

}  // namespace exl3::server
