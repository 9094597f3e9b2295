#pragma once
#include <cmath>
#include <regex>
#include <set>
#include <string>

#include "io/json.h"

namespace exl3::test {

/// Whether a value satisfies a schema: the keywords that tests use, straight from their definitions
/// and independent of the grammar compiler. Lengths count code points.
class SchemaCheck {
public:
    explicit SchemaCheck(Json root) : root_(std::move(root)) {}
    bool valid(const Json& v) const { return valid(root_, v); }

private:
    static bool is(const std::string& type, const Json& v) {
        if (type == "integer")
            return v.is_number_integer() ||
                   (v.is_number() && std::floor(v.get<double>()) == v.get<double>());
        if (type == "number") return v.is_number();
        if (type == "string") return v.is_string();
        if (type == "boolean") return v.is_boolean();
        if (type == "null") return v.is_null();
        return type == "object" ? v.is_object() : v.is_array();
    }
    static size_t length(const std::string& s) {
        size_t n = 0;
        for (const char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
        return n;
    }
    bool valid(const Json& s, const Json& v) const {
        if (s.is_boolean()) return s.get<bool>();
        if (s.contains("$ref")) {
            const auto ref = s["$ref"].get<std::string>();
            if (!valid(root_.at(Json::json_pointer(ref.substr(1))), v)) return false;
        }
        if (s.contains("type")) {
            const Json types = s["type"].is_array() ? s["type"] : Json::array({s["type"]});
            bool any = s.value("nullable", false) && v.is_null();
            for (const Json& t : types) any = any || is(t.get<std::string>(), v);
            if (!any) return false;
        }
        if (s.contains("const") && s["const"] != v) return false;
        if (s.contains("enum")) {
            bool any = false;
            for (const Json& e : s["enum"]) any = any || e == v;
            if (!any) return false;
        }
        for (const char* word : {"anyOf", "oneOf"})
            if (s.contains(word)) {
                bool any = false;
                for (const Json& e : s[word]) any = any || valid(e, v);
                if (!any) return false;
            }
        if (s.contains("allOf"))
            for (const Json& e : s["allOf"])
                if (!valid(e, v)) return false;
        if (v.is_string()) return string(s, v.get<std::string>());
        if (v.is_number()) return number(s, v.get<double>());
        if (v.is_array()) return array(s, v);
        return !v.is_object() || object(s, v);
    }
    static bool string(const Json& s, const std::string& v) {
        if (s.contains("minLength") && length(v) < s["minLength"].get<size_t>()) return false;
        if (s.contains("maxLength") && length(v) > s["maxLength"].get<size_t>()) return false;
        return !s.contains("pattern") ||
               std::regex_search(v, std::regex(s["pattern"].get<std::string>()));
    }
    static bool number(const Json& s, double v) {
        if (s.contains("minimum") && v < s["minimum"].get<double>()) return false;
        if (s.contains("maximum") && v > s["maximum"].get<double>()) return false;
        if (s.contains("exclusiveMinimum") && v <= s["exclusiveMinimum"].get<double>())
            return false;
        if (s.contains("exclusiveMaximum") && v >= s["exclusiveMaximum"].get<double>())
            return false;
        if (!s.contains("multipleOf")) return true;
        const double times = v / s["multipleOf"].get<double>();
        return std::fabs(times - std::round(times)) < 1e-6 * std::max(1.0, std::fabs(times));
    }
    bool array(const Json& s, const Json& v) const {
        if (s.contains("minItems") && v.size() < s["minItems"].get<size_t>()) return false;
        if (s.contains("maxItems") && v.size() > s["maxItems"].get<size_t>()) return false;
        const Json first = s.value("prefixItems", Json::array());
        for (size_t i = 0; i < v.size(); ++i) {
            if (i < first.size()) {
                if (!valid(first[i], v[i])) return false;
            } else if (s.contains("items") && !valid(s["items"], v[i])) {
                return false;
            }
        }
        return true;
    }
    bool object(const Json& s, const Json& v) const {
        if (s.contains("minProperties") && v.size() < s["minProperties"].get<size_t>())
            return false;
        if (s.contains("maxProperties") && v.size() > s["maxProperties"].get<size_t>())
            return false;
        if (s.contains("required"))
            for (const Json& name : s["required"])
                if (!v.contains(name.get<std::string>())) return false;
        for (const auto& [name, value] : v.items()) {
            bool described = false;
            if (s.contains("properties") && s["properties"].contains(name)) {
                described = true;
                if (!valid(s["properties"][name], value)) return false;
            }
            if (s.contains("patternProperties"))
                for (const auto& [pattern, schema] : s["patternProperties"].items())
                    if (std::regex_search(name, std::regex(pattern))) {
                        described = true;
                        if (!valid(schema, value)) return false;
                    }
            if (!described && s.contains("additionalProperties") &&
                !valid(s["additionalProperties"], value))
                return false;
            if (s.contains("propertyNames") && !valid(s["propertyNames"], Json(name))) return false;
        }
        return true;
    }
    Json root_;
};

}  // namespace exl3::test
