#pragma once
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace exl3::server {

/// What a request may do.
enum class Access { nobody, user, admin };

/// The keys that open the server. With none at all everybody is an administrator; with an admin key
/// alone, that key is needed everywhere.
class Keys {
public:
    /// @param file  YAML with api_key (text or list) and admin_key, read again when it changes;
    /// keys
    ///              in it come on top of the others. Empty: none. If it does not exist it is made,
    ///              with random keys.
    /// Throws Error{invalid_file} or {io} naming the file.
    Keys(std::vector<std::string> api_keys, std::vector<std::string> admin_keys,
         std::filesystem::path file = {});

    /// The best access among the keys that a request presents (Authorization: Bearer, x-api-key,
    /// api-key, x-admin-key). Takes the same time whatever part of a key is right.
    Access access(const HttpRequest& request);
    bool open() const { return open_; }  ///< no keys at all

private:
    void read_file();
    void reread_if_changed();

    std::vector<std::string> fixed_api_, fixed_admin_;
    std::filesystem::path file_;
    bool open_ = false;
    std::mutex mutex_;
    std::vector<std::string> api_, admin_;  // with those of the file
    std::filesystem::file_time_type changed_{};
    std::chrono::steady_clock::time_point looked_{};
};

}  // namespace exl3::server
