#pragma once
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/json.h"

namespace exl3 {

/// config.json (and generation_config.json) of a checkpoint with typed, checked access. Every
/// failure names the file and the key, what was found and what was needed. A missing key and an
/// explicit null are the same. An integer passes for a float, a float without a fraction for an
/// int. Paths are written "a.b". Every key that get/has/find/list reads is remembered, so that an
/// architecture can ask what it has not looked at; a child and copies share that memory, so one
/// thread at a time reads a config and its children.
/// The infinities that Python writes bare or as {"__float__": "Infinity"} are numbers.
class HfConfig {
public:
    /// @param file  named in errors, e.g. "/models/x/config.json"
    HfConfig(Json json, std::string file);
    static Result<HfConfig> parse(std::string_view text, const std::string& file);
    static Result<HfConfig> load(const std::filesystem::path& file);

    bool has(std::string_view path) const;
    /// True for a list, for keys that hold either one value or several.
    bool is_list(std::string_view path) const;
    /// T: bool, int, int64_t, float, double, std::string. Throws Error{invalid_file}.
    template <typename T>
    T get(std::string_view path) const;
    template <typename T>
    T get(std::string_view path, T otherwise) const;
    /// The first of several spellings that is present.
    template <typename T>
    std::optional<T> find(std::initializer_list<std::string_view> paths) const;
    /// T: bool, int, double, std::string. Missing: empty.
    template <typename T>
    std::vector<T> list(std::string_view path) const;
    /// The object at `path` as a config of its own (errors name the full path); empty if missing.
    std::optional<HfConfig> child(std::string_view path) const;

    /// The same config with other values for some keys of this level; null takes a key away. What
    /// is read of it counts as read here too.
    HfConfig with(const Json& values) const;
    /// The same for keys that are missing or null here.
    HfConfig with_defaults(const Json& values) const;

    /// architectures[0]; the list must hold exactly one string.
    std::string architecture() const;
    /// Paths (from here) of the values that nothing has read, nulls left out, in file order. A list
    /// counts as one value.
    std::vector<std::string> unread() const;
    const Json& json() const { return json_; }
    const std::string& file() const { return file_; }
    /// Throws Error{invalid_file}: "FILE: key 'PATH': WHAT". For rules an architecture checks
    /// itself.
    [[noreturn]] void fail(std::string_view path, std::string_view what) const;

private:
    const Json* at(std::string_view path) const;
    Json json_;
    std::string file_;
    std::string prefix_;  ///< path of this object inside the file, "" or "text_config."
    std::shared_ptr<std::set<std::string, std::less<>>> read_;  ///< full paths
};

/// The token ids that end an answer: the union of eos_token_id in config.json (top level, then
/// text_config; int or list), eos_token in tokenizer_config.json (resolved by the caller) and
/// eos_token_id in generation_config.json, in that order without repeats.
std::vector<int> eos_token_ids(const HfConfig& config, const std::optional<HfConfig>& generation);

}  // namespace exl3
