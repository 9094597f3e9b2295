#include "api/fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace exl3::api {
namespace {

// What a client sent, short enough to be put into a message.
std::string excerpt(const Json& value) {
    constexpr size_t kLimit = 40;
    if (value.is_structured()) return kind_of(value);
    const std::string text = to_text(value);
    if (text.size() <= kLimit) return text;
    return kind_of(value) + " of " + std::to_string(text.size()) + " bytes";
}

std::optional<int64_t> whole_number(const Json& value) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) return {};
    if (value.is_number_integer()) return value.get<int64_t>();
    if (!value.is_number_float()) return {};
    const double d = value.get<double>();
    if (std::floor(d) != d || std::abs(d) > 9e15) return {};
    return static_cast<int64_t>(d);
}

}  // namespace

std::string kind_of(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null: return "null";
        case Json::value_t::object: return "an object";
        case Json::value_t::array: return "a list";
        case Json::value_t::string: return "a string";
        case Json::value_t::boolean: return "a boolean";
        default: return "a number";
    }
}

std::string to_text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parse_body(std::string_view body) {
    auto parsed = parse_json(body, "request body");
    if (!parsed) throw ApiError(400, parsed.error().what());
    if (!parsed->is_object())
        throw ApiError(
            400, fmt::format("request body: found {}, needed a JSON object", kind_of(*parsed)));
    return std::move(*parsed);
}

Fields::Fields(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {
    if (!value.is_object())
        throw bad_field(path_, fmt::format("found {}, needed an object", excerpt(value)));
}

std::string Fields::at(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Fields::fail(std::string_view name, std::string_view what) const {
    throw bad_field(at(name), what);
}

void Fields::wrong_type(const Found& found, std::string_view needed) const {
    fail(found.name, fmt::format("found {}, needed {}", excerpt(*found.value), needed));
}

Fields::Found Fields::look(Names names) const {
    for (const std::string_view name : names)
        if (const auto it = value_->find(name); it != value_->end() && !it->is_null())
            return {name, &*it};
    return {};
}

const Json* Fields::find(Names names) const {
    return look(names).value;
}

std::optional<std::string> Fields::text(Names names) const {
    const Found f = look(names);
    if (!f.value) return {};
    if (!f.value->is_string()) wrong_type(f, "a string");
    return f.value->get<std::string>();
}

std::optional<bool> Fields::flag(Names names) const {
    const Found f = look(names);
    if (!f.value) return {};
    if (!f.value->is_boolean()) wrong_type(f, "true or false");
    return f.value->get<bool>();
}

std::optional<int64_t> Fields::integer(Names names, int64_t least, int64_t greatest) const {
    const Found f = look(names);
    if (!f.value) return {};
    const auto value = whole_number(*f.value);
    if (!value) wrong_type(f, "a whole number");
    if (*value < least || *value > greatest)
        fail(f.name, fmt::format("found {}, needed {} to {}", *value, least, greatest));
    return value;
}

std::optional<double> Fields::number(Names names, double least, double greatest) const {
    const Found f = look(names);
    if (!f.value) return {};
    if (!f.value->is_number()) wrong_type(f, "a number");
    const double value = f.value->get<double>();
    if (!(value >= least && value <= greatest))
        fail(f.name, fmt::format("found {}, needed {} to {}", value, least, greatest));
    return value;
}

std::vector<std::string> Fields::texts(Names names) const {
    const Found f = look(names);
    if (!f.value) return {};
    if (f.value->is_string()) return {f.value->get<std::string>()};
    if (!f.value->is_array()) wrong_type(f, "a string or a list of strings");
    std::vector<std::string> all;
    for (const Json& item : *f.value) {
        if (!item.is_string())
            fail(fmt::format("{}[{}]", f.name, all.size()),
                 fmt::format("found {}, needed a string", excerpt(item)));
        all.push_back(item.get<std::string>());
    }
    return all;
}

std::vector<int64_t> Fields::integers(Names names) const {
    const Found f = look(names);
    std::vector<int64_t> all;
    if (!f.value) return all;
    if (f.value->is_array()) {
        for (const Json& item : *f.value) {
            const auto value = whole_number(item);
            if (!value)
                fail(fmt::format("{}[{}]", f.name, all.size()),
                     fmt::format("found {}, needed a whole number", excerpt(item)));
            all.push_back(*value);
        }
        return all;
    }
    if (!f.value->is_string()) wrong_type(f, "a list of whole numbers");
    const std::string text = f.value->get<std::string>();
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        int64_t value = 0;
        while (at != end && (*at == ' ' || *at == ',')) ++at;
        if (at == end) break;
        const auto [next, error] = std::from_chars(at, end, value);
        if (error != std::errc()) wrong_type(f, "whole numbers with commas between them");
        all.push_back(value);
        at = next;
    }
    return all;
}

const Json* Fields::object(Names names) const {
    const Found f = look(names);
    if (f.value && !f.value->is_object()) wrong_type(f, "an object");
    return f.value;
}

const Json* Fields::array(Names names) const {
    const Found f = look(names);
    if (f.value && !f.value->is_array()) wrong_type(f, "a list");
    return f.value;
}

std::string Fields::need_text(std::string_view name) const {
    auto value = text({name});
    if (!value) fail(name, "missing, needed a string");
    return std::move(*value);
}

const Json& Fields::need_array(std::string_view name) const {
    const Json* value = array({name});
    if (!value) fail(name, "missing, needed a list");
    return *value;
}

}  // namespace exl3::api
