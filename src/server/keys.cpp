#include "server/keys.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <fstream>

#include "api/output_parser.h"
#include "base/error.h"
#include "base/log.h"

namespace exl3::server {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(2);

// Looks at every byte, so that the time tells nothing about where a guess went wrong.
bool same_secret(std::string_view a, std::string_view b) {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned>(a[i] ^ (b.empty() ? '\1' : b[i % b.size()]));
    return difference == 0;
}

bool any_same(const std::vector<std::string>& keys, std::string_view given) {
    bool found = false;
    for (const std::string& k : keys) found |= !given.empty() && same_secret(given, k);
    return found;
}

std::vector<std::string_view> presented(const HttpRequest& request) {
    std::vector<std::string_view> keys;
    for (const char* name : {"x-api-key", "x-admin-key", "api-key"})
        if (const auto value = request.header(name); !value.empty()) keys.push_back(value);
    std::string_view bearer = request.header("authorization");
    if (bearer.size() > 7 && (bearer.starts_with("Bearer ") || bearer.starts_with("bearer ")))
        keys.push_back(bearer.substr(7));
    return keys;
}

std::vector<std::string> read_keys(const YAML::Node& node) {
    if (!node) return {};
    if (node.IsSequence()) return node.as<std::vector<std::string>>();
    return {node.as<std::string>()};
}

void make_file(const std::filesystem::path& file) {
    // 24 digits of make_id twice: more than enough to be guessed by nobody.
    const std::string api = api::make_id("") + api::make_id("");
    const std::string admin = api::make_id("") + api::make_id("");
    std::ofstream out(file);
    ::chmod(file.c_str(), 0600);
    out << "# Keys of the server. Changes count within seconds.\napi_key: " << api
        << "\nadmin_key: " << admin << "\n";
    if (!out.flush()) throw Error(Errc::io, {file, {}, {}}, "could not be written");
    log(LogLevel::info, "made {} with random keys", file.string());
}

}  // namespace

Keys::Keys(std::vector<std::string> api_keys, std::vector<std::string> admin_keys,
           std::filesystem::path file)
    : fixed_api_(std::move(api_keys)),
      fixed_admin_(std::move(admin_keys)),
      file_(std::move(file)),
      api_(fixed_api_),
      admin_(fixed_admin_) {
    if (!file_.empty()) {
        if (!std::filesystem::exists(file_)) make_file(file_);
        read_file();
    }
    open_ = api_.empty() && admin_.empty();
}

void Keys::read_file() {
    std::error_code ec;
    const auto changed = std::filesystem::last_write_time(file_, ec);
    std::vector<std::string> api = fixed_api_, admin = fixed_admin_;
    try {
        const YAML::Node root = YAML::LoadFile(file_);
        for (auto& k : read_keys(root["api_key"])) api.push_back(std::move(k));
        for (auto& k : read_keys(root["admin_key"])) admin.push_back(std::move(k));
    } catch (const YAML::Exception& e) {
        throw Error(Errc::invalid_file, {file_, {}, {}},
                    fmt::format("{}: needed YAML with api_key and admin_key", e.what()));
    }
    std::erase(api, std::string());
    std::erase(admin, std::string());
    api_ = std::move(api);
    admin_ = std::move(admin);
    changed_ = changed;
}

void Keys::reread_if_changed() {
    const auto now = std::chrono::steady_clock::now();
    if (file_.empty() || now - looked_ < kLookEvery) return;
    looked_ = now;
    std::error_code ec;
    const auto changed = std::filesystem::last_write_time(file_, ec);
    if (ec || changed == changed_) return;
    try {
        read_file();
        log(LogLevel::info, "keys read again from {}", file_.string());
    } catch (const Error& e) {
        changed_ = changed;
        log(LogLevel::warn, "{}; the old keys stay", e.what());
    }
}

Access Keys::access(const HttpRequest& request) {
    if (open_) return Access::admin;
    const std::lock_guard lock(mutex_);
    reread_if_changed();
    Access best = Access::nobody;
    for (const std::string_view key : presented(request)) {
        if (any_same(admin_, key)) best = Access::admin;
        if (any_same(api_, key) && best == Access::nobody) best = Access::user;
    }
    return best;
}

}  // namespace exl3::server
