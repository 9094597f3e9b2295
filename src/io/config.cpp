#include "io/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/mapped_file.h"

namespace exl3 {
namespace {

/// A value as an error message shows it.
std::string describe(const Json* value) {
    if (value == nullptr) return "nothing";
    if (value->is_array()) return fmt::format("a list of {}", value->size());
    if (value->is_object()) return "an object";
    std::string text = value->dump(-1, ' ', true, Json::error_handler_t::replace);
    constexpr size_t kLimit = 60;
    if (text.size() > kLimit) text = text.substr(0, kLimit) + "...";
    return value->is_string() ? "the string " + text : text;
}

/// Infinity as newer transformers write it. Bare ones are turned into this before parsing.
std::optional<double> special_float(const Json& value) {
    if (!value.is_object() || value.size() != 1) return std::nullopt;
    const auto it = value.find("__float__");
    if (it == value.end() || !it->is_string()) return std::nullopt;
    const auto& text = it->get_ref<const std::string&>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
}

// Each reads one value; nullopt when it has the wrong type or range. kNeeded says what is right.
template <typename T>
struct Reader;

template <>
struct Reader<bool> {
    static constexpr const char* kNeeded = "true or false";
    static std::optional<bool> read(const Json& v) {
        if (!v.is_boolean()) return std::nullopt;
        return v.get<bool>();
    }
};

template <typename T>
std::optional<T> read_integer(const Json& v) {
    if (v.is_number_unsigned()) {
        const auto u = v.get<uint64_t>();
        if (u > static_cast<uint64_t>(std::numeric_limits<T>::max())) return std::nullopt;
        return static_cast<T>(u);
    }
    if (v.is_number_integer()) {
        const auto i = v.get<int64_t>();
        if (i < std::numeric_limits<T>::min()) return std::nullopt;
        return static_cast<T>(i);
    }
    if (!v.is_number_float()) return std::nullopt;
    const auto d = v.get<double>();
    // -min is 2^31 or 2^63, which a double holds and the largest T does not reach.
    constexpr auto kEnd = -static_cast<double>(std::numeric_limits<T>::min());
    if (!(d >= -kEnd && d < kEnd) || d != std::trunc(d)) return std::nullopt;
    return static_cast<T>(d);
}
template <>
struct Reader<int> {
    static constexpr const char* kNeeded = "an integer of 32 bits";
    static std::optional<int> read(const Json& v) { return read_integer<int>(v); }
};
template <>
struct Reader<int64_t> {
    static constexpr const char* kNeeded = "an integer of 64 bits";
    static std::optional<int64_t> read(const Json& v) { return read_integer<int64_t>(v); }
};

template <>
struct Reader<double> {
    static constexpr const char* kNeeded = "a number";
    static std::optional<double> read(const Json& v) {
        if (v.is_number()) return v.get<double>();
        return special_float(v);
    }
};
template <>
struct Reader<float> {
    static constexpr const char* kNeeded = "a number within the range of a float";
    static std::optional<float> read(const Json& v) {
        const auto d = Reader<double>::read(v);
        if (!d || (std::isfinite(*d) && std::abs(*d) > std::numeric_limits<float>::max()))
            return std::nullopt;
        return static_cast<float>(*d);
    }
};

template <>
struct Reader<std::string> {
    static constexpr const char* kNeeded = "a string";
    static std::optional<std::string> read(const Json& v) {
        if (!v.is_string()) return std::nullopt;
        return v.get<std::string>();
    }
};

/// Rewrites the bare infinities of Python's json, outside strings, as objects that strict JSON
/// allows. nullopt: there are none.
std::optional<std::string> without_bare_infinities(std::string_view text) {
    constexpr std::string_view kBare = "Infinity";
    std::string out;
    bool in_string = false, found = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (in_string && text[i] == '\\') {
            out += text.substr(i++, 2);
            continue;
        }
        if (text[i] == '"') in_string = !in_string;
        if (in_string || text.substr(i, kBare.size()) != kBare) {
            out += text[i];
            continue;
        }
        const bool negative = !out.empty() && out.back() == '-';
        if (negative) out.pop_back();
        out += negative ? R"({"__float__":"-Infinity"})" : R"({"__float__":"Infinity"})";
        i += kBare.size() - 1;
        found = true;
    }
    return found ? std::optional(std::move(out)) : std::nullopt;
}

void collect_leaves(const Json& object, const std::string& prefix, std::vector<std::string>& out) {
    for (const auto& [key, value] : object.items()) {
        if (value.is_object() && !special_float(value))
            collect_leaves(value, prefix + key + ".", out);
        else if (!value.is_null())
            out.push_back(prefix + key);
    }
}

}  // namespace

HfConfig::HfConfig(Json json, std::string file)
    : json_(std::move(json)),
      file_(std::move(file)),
      read_(std::make_shared<std::set<std::string, std::less<>>>()) {
    if (!json_.is_object())
        throw Error(Errc::invalid_file, {file_},
                    fmt::format("found {}, needed an object", describe(&json_)));
}

Result<HfConfig> HfConfig::parse(std::string_view text, const std::string& file) {
    auto json = parse_json(text, file);
    if (!json)
        if (const auto rewritten = without_bare_infinities(text))
            if (auto again = parse_json(*rewritten, file)) json = std::move(again);
    if (!json) return json.error();
    try {
        return HfConfig(std::move(*json), file);
    } catch (const Error& e) {
        return e;
    }
}

Result<HfConfig> HfConfig::load(const std::filesystem::path& file) {
    constexpr size_t kLimit = size_t{64} << 20;  // real ones have a few KiB
    auto text = read_file(file, kLimit);
    if (!text) return text.error();
    return parse(*text, file.string());
}

void HfConfig::fail(std::string_view path, std::string_view what) const {
    throw Error(Errc::invalid_file, {file_}, fmt::format("key '{}{}': {}", prefix_, path, what));
}

const Json* HfConfig::at(std::string_view path) const {
    read_->insert(prefix_ + std::string(path));
    const Json* value = &json_;
    for (size_t begin = 0; begin <= path.size();) {
        const size_t end = std::min(path.find('.', begin), path.size());
        if (!value->is_object())
            fail(path.substr(0, begin - 1),
                 fmt::format("found {}, needed an object", describe(value)));
        const auto it = value->find(path.substr(begin, end - begin));
        if (it == value->end() || it->is_null()) return nullptr;
        value = &*it;
        begin = end + 1;
    }
    return value;
}

bool HfConfig::has(std::string_view path) const {
    return at(path) != nullptr;
}

bool HfConfig::is_list(std::string_view path) const {
    const Json* value = at(path);
    return value != nullptr && value->is_array();
}

template <typename T>
T HfConfig::get(std::string_view path) const {
    const Json* value = at(path);
    if (value)
        if (auto read = Reader<T>::read(*value)) return *std::move(read);
    fail(path, fmt::format("found {}, needed {}", describe(value), Reader<T>::kNeeded));
}

template <typename T>
T HfConfig::get(std::string_view path, T otherwise) const {
    return has(path) ? get<T>(path) : std::move(otherwise);
}

template <typename T>
std::optional<T> HfConfig::find(std::initializer_list<std::string_view> paths) const {
    for (const std::string_view path : paths)
        if (has(path)) return get<T>(path);
    return std::nullopt;
}

template <typename T>
std::vector<T> HfConfig::list(std::string_view path) const {
    const Json* value = at(path);
    if (!value) return {};
    if (!value->is_array()) fail(path, fmt::format("found {}, needed a list", describe(value)));
    std::vector<T> out;
    out.reserve(value->size());
    for (const Json& element : *value) {
        auto read = Reader<T>::read(element);
        if (!read)
            fail(fmt::format("{}[{}]", path, out.size()),
                 fmt::format("found {}, needed {}", describe(&element), Reader<T>::kNeeded));
        out.push_back(*std::move(read));
    }
    return out;
}

std::optional<HfConfig> HfConfig::child(std::string_view path) const {
    const Json* value = at(path);
    if (!value) return std::nullopt;
    if (!value->is_object()) fail(path, fmt::format("found {}, needed an object", describe(value)));
    HfConfig config(*value, file_);
    config.prefix_ = fmt::format("{}{}.", prefix_, path);
    config.read_ = read_;
    return config;
}

HfConfig HfConfig::with(const Json& values) const {
    HfConfig config = *this;
    config.json_.update(values);
    return config;
}

HfConfig HfConfig::with_defaults(const Json& values) const {
    HfConfig config = *this;
    for (const auto& [key, value] : values.items())
        if (!json_.contains(key) || json_.at(key).is_null()) config.json_[key] = value;
    return config;
}

std::string HfConfig::architecture() const {
    const auto names = list<std::string>("architectures");
    if (names.size() != 1)
        fail("architectures", fmt::format("found {}, needed a list of exactly one name",
                                          describe(at("architectures"))));
    return names.front();
}

std::vector<std::string> HfConfig::unread() const {
    std::vector<std::string> paths;
    collect_leaves(json_, "", paths);
    std::erase_if(paths, [&](const std::string& p) { return read_->contains(prefix_ + p); });
    return paths;
}

std::vector<int> eos_token_ids(const HfConfig& config, const std::optional<HfConfig>& generation) {
    std::vector<int> ids;
    const auto add = [&](const HfConfig& from, std::string_view path) {
        if (!from.has(path)) return false;
        std::vector<int> found;
        if (from.is_list(path))
            found = from.list<int>(path);
        else
            found = {from.get<int>(path)};
        for (const int id : found)
            if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
        return true;
    };
    if (!add(config, "eos_token_id")) add(config, "text_config.eos_token_id");
    if (generation) add(*generation, "eos_token_id");
    return ids;
}

#define EXL3_CONFIG_TYPE(T)                                 \
    template T HfConfig::get<T>(std::string_view) const;    \
    template T HfConfig::get<T>(std::string_view, T) const; \
    template std::optional<T> HfConfig::find<T>(std::initializer_list<std::string_view>) const;
EXL3_CONFIG_TYPE(bool)
EXL3_CONFIG_TYPE(int)
EXL3_CONFIG_TYPE(int64_t)
EXL3_CONFIG_TYPE(float)
EXL3_CONFIG_TYPE(double)
EXL3_CONFIG_TYPE(std::string)
#undef EXL3_CONFIG_TYPE
template std::vector<bool> HfConfig::list<bool>(std::string_view) const;
template std::vector<int> HfConfig::list<int>(std::string_view) const;
template std::vector<double> HfConfig::list<double>(std::string_view) const;
template std::vector<std::string> HfConfig::list<std::string>(std::string_view) const;

}  // namespace exl3
