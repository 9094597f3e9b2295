// The HTTP server.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "base/log.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "server/http_server.h"
#include "server/service.h"

namespace exl3::cli {
namespace {

struct ServeOptions {
    std::string model, host, config_file, template_file, keys_file;
    int port = -1;
    int64_t context = 0, cache = 0;
    int batch = 0;
    std::vector<std::string> api_keys, admin_keys;
    bool print_config = false;
    KvBits kv_bits;
    DeviceFlags device;
};

// File, then environment, then flags.
server::ServerConfig read_settings(const ServeOptions& o) {
    server::ServerConfig c;
    if (!o.config_file.empty()) server::read_config(o.config_file, c);
    server::read_config_environment(c);
    if (!o.host.empty()) c.network.host = o.host;
    if (o.port >= 0) c.network.port = o.port;
    if (!o.api_keys.empty()) c.network.api_keys = o.api_keys;
    if (!o.admin_keys.empty()) c.network.admin_keys = o.admin_keys;
    if (!o.keys_file.empty()) c.network.keys_file = o.keys_file;
    if (!o.template_file.empty()) c.model.prompt_template = o.template_file;
    if (!o.model.empty()) c.model.model_name = o.model;
    if (o.context > 0) c.model.max_seq_len = o.context;
    if (o.cache > 0) c.model.cache_size = o.cache;
    if (o.batch > 0) c.model.max_batch_size = o.batch;
    if (o.kv_bits.keys != 16 || o.kv_bits.values != 16)
        c.model.cache_mode = fmt::format("{},{}", o.kv_bits.keys, o.kv_bits.values);
    return c;
}

std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

server::HttpOptions http_options(const server::ServerConfig& c) {
    const auto& n = c.network;
    server::HttpOptions h;
    h.host = n.host;
    h.port = n.port;
    h.max_body_bytes = static_cast<size_t>(n.max_body_mb * (1 << 20));
    h.max_header_bytes = static_cast<size_t>(n.max_header_kb) << 10;
    h.max_connections = n.max_connections;
    h.idle_timeout = milliseconds(n.idle_timeout);
    h.read_timeout = milliseconds(n.read_timeout);
    h.write_timeout = milliseconds(n.write_timeout);
    h.ping_interval = milliseconds(n.sse_ping_interval);
    return h;
}

// As many open files as connections, and some to spare.
void allow_connections(int wanted) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const auto needed = static_cast<rlim_t>(wanted) + 256;
    if (limit.rlim_cur >= needed) return;
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < needed)
        log(LogLevel::warn, "the system allows {} open files, max_connections needs {}",
            limit.rlim_cur, needed);
}

void warn_if_open(const server::ServerConfig& c) {
    const auto& n = c.network;
    const bool local = n.host == "127.0.0.1" || n.host == "localhost" || n.host == "::1";
    const bool keys = !n.api_keys.empty() || !n.admin_keys.empty() || !n.keys_file.empty();
    if (!local && (!keys || n.disable_auth))
        log(LogLevel::warn, "anybody who reaches {}:{} may use the server: there is no --api-key",
            n.host, n.port);
}

// Waits for SIGTERM or ctrl-C, then for the answers in progress.
void wait_for_end(server::HttpServer& http, server::Service& service, double grace_seconds) {
    using namespace std::chrono_literals;
    while (!stop_requested()) std::this_thread::sleep_for(50ms);
    log(LogLevel::info, "finishing {} running answers", http.active());
    service.begin_shutdown();
    http.stop_accepting();
    const auto end = std::chrono::steady_clock::now() + milliseconds(grace_seconds);
    while (http.active() > 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(20ms);
    service.cancel_running();
    const auto last = std::chrono::steady_clock::now() + 2s;
    while (http.active() > 0 && std::chrono::steady_clock::now() < last)
        std::this_thread::sleep_for(20ms);
}

void serve(const ServeOptions& o) {
    const server::ServerConfig config = read_settings(o);
    if (o.print_config) return print(server::write_config(config));
    allow_connections(config.network.max_connections);
    warn_if_open(config);
    server::Service service(config, {o.device.device, o.device.options()});
    server::HttpServer http(http_options(config), service.handler());
    if (!config.model.model_name.empty()) {
        Progress progress("loading");
        service.load(config.model.model_name, [&](int done, int total) {
            check_stop();
            progress.update(done, total);
        });
    }
    print(fmt::format("listening on {}\n", http.address()));
    wait_for_end(http, service, config.network.shutdown_grace);
}

}  // namespace

void add_serve(Command& command) {
    auto& o = command.options<ServeOptions>();
    CLI::App& app = command.app;
    app.add_option("-m,--model", o.model,
                   "Folder of the model; without one it is loaded by request")
        ->type_name("DIR");
    app.add_option("--host", o.host, "Address to listen on (127.0.0.1)")->type_name("ADDRESS");
    app.add_option("--port", o.port, "Port to listen on (8080); 0: any free one")
        ->type_name("N")
        ->check(CLI::Range(0, 65535));
    app.add_option("--api-key", o.api_keys, "Key that requests must present; may be repeated")
        ->type_name("K")
        ->allow_extra_args(false);
    app.add_option("--admin-key", o.admin_keys, "Key that may load and unload models")
        ->type_name("K")
        ->allow_extra_args(false);
    app.add_option("--keys-file", o.keys_file, "YAML file with keys, made if it does not exist")
        ->type_name("FILE");
    app.add_option("--config", o.config_file, "YAML file with options; flags win")
        ->type_name("FILE");
    app.add_flag("--print-config", o.print_config, "Print every option with its value, and end");
    app.add_option("--template", o.template_file, "Use this chat template instead of the model's")
        ->type_name("FILE");
    app.add_option("--ctx", o.context, "Tokens one conversation may have")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
    app.add_option("--cache-tokens", o.cache, "Tokens in the cache that all conversations share")
        ->type_name("N")
        ->check(CLI::Range(int64_t{256}, int64_t{1} << 33));
    app.add_option("--max-batch", o.batch, "Answers written at once")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    add_kv_bits_flag(command, o.kv_bits);
    add_device_flags(command, o.device);
    command.run([&o] { serve(o); });
}

}  // namespace exl3::cli
