#include "grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "grammar/json_numbers.h"
#include "grammar/json_text.h"
#include "grammar/regex.h"

namespace exl3 {
namespace {

using Expr = Rules::Expr;

constexpr int kDeepest = 100;          // nested schemas
constexpr int kMostCount = 1'000'000;  // items, characters
constexpr int kLargestDivisor = 256;   // of multipleOf

// Keywords that say nothing about what is valid.
const std::set<std::string>& annotations() {
    static const std::set<std::string> all = {"title",
                                              "description",
                                              "default",
                                              "examples",
                                              "example",
                                              "$schema",
                                              "$id",
                                              "$comment",
                                              "$defs",
                                              "definitions",
                                              "deprecated",
                                              "readOnly",
                                              "writeOnly",
                                              "strict",
                                              "name",
                                              "contentEncoding",
                                              "contentMediaType",
                                              "$vocabulary",
                                              "discriminator",
                                              "xml",
                                              "externalDocs",
                                              "propertyOrdering",
                                              "$anchor"};
    return all;
}

bool is_known_type(const std::string& t) {
    return t == "string" || t == "number" || t == "integer" || t == "object" || t == "array" ||
           t == "boolean" || t == "null";
}

std::string type_of(const Json& v) {
    if (v.is_string()) return "string";
    if (v.is_number_integer()) return "integer";
    if (v.is_number()) return std::floor(v.get<double>()) == v.get<double>() ? "integer" : "number";
    if (v.is_boolean()) return "boolean";
    if (v.is_null()) return "null";
    return v.is_object() ? "object" : "array";
}

// The keywords of each type; another keyword is one that a schema may not have.
const std::map<std::string, std::set<std::string>>& keywords() {
    static const std::map<std::string, std::set<std::string>> all = {
        {"string", {"minLength", "maxLength", "pattern", "format"}},
        {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
        {"object",
         {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
          "minProperties", "maxProperties"}},
        {"array",
         {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"}},
    };
    return all;
}

class Compiler {
public:
    Compiler(Rules& rules, const Json& root) : r_(rules), text_(rules), root_(root) {}

    Expr schema(const Json& s, const std::string& path, int depth) {
        if (depth > kDeepest) refuse(path, fmt::format("schemas nest deeper than {}", kDeepest));
        if (s.is_boolean()) return s.get<bool>() ? text_.value() : r_.never();
        if (!s.is_object()) refuse(path, "found " + s.dump().substr(0, 40) + ", needed a schema");
        check_keywords(s, path);
        if (s.contains("$ref")) return reference(s, path, depth);
        if (s.contains("allOf")) return schema(all_of(s, path, depth), path, depth + 1);
        for (const char* word : {"anyOf", "oneOf"})
            if (s.contains(word)) return any_of(s, word, path, depth);
        if (s.contains("const")) return values(s, Json::array({s.at("const")}), path);
        if (s.contains("enum")) {
            if (!s.at("enum").is_array() || s.at("enum").empty())
                refuse(path + "/enum", "needed a list of at least one value");
            return values(s, s.at("enum"), path);
        }
        std::vector<Expr> choices;
        for (const std::string& type : types(s, path))
            choices.push_back(of_type(s, type, path, depth));
        return choices.empty() ? text_.value() : r_.any_of(std::move(choices));
    }

private:
    [[noreturn]] void refuse(const std::string& path, const std::string& what) const {
        throw Error(Errc::invalid_argument, {},
                    fmt::format("JSON schema, {}: {}", path.empty() ? "/" : path, what));
    }

    void check_keywords(const Json& s, const std::string& path) const {
        static const std::set<std::string> general = {"type",  "enum",  "const", "anyOf",
                                                      "oneOf", "allOf", "$ref",  "nullable"};
        for (const auto& [word, value] : s.items()) {
            if (general.contains(word) || annotations().contains(word) || word.starts_with("x-"))
                continue;
            const bool known = std::any_of(keywords().begin(), keywords().end(),
                                           [&](const auto& k) { return k.second.contains(word); });
            if (!known) refuse(path, "keyword '" + word + "' is not supported");
        }
    }

    // The types a schema allows; empty: every one.
    std::vector<std::string> types(const Json& s, const std::string& path) const {
        std::vector<std::string> out;
        if (s.contains("type")) {
            const Json& t = s.at("type");
            for (const Json& one : t.is_array() ? t : Json::array({t})) {
                if (!one.is_string() || !is_known_type(one.get<std::string>()))
                    refuse(path + "/type", "found " + one.dump() + ", needed a JSON type");
                out.push_back(one.get<std::string>());
            }
        } else {
            for (const auto& [type, words] : keywords())
                if (std::any_of(words.begin(), words.end(),
                                [&](const std::string& w) { return s.contains(w); }))
                    out.push_back(type);
        }
        if (s.value("nullable", false) && !out.empty() &&
            std::find(out.begin(), out.end(), "null") == out.end())
            out.push_back("null");
        return out;
    }

    Expr of_type(const Json& s, const std::string& type, const std::string& path, int depth) {
        if (type == "string") return string(s, path);
        if (type == "integer") return integer(s, path);
        if (type == "number") return number(s, path);
        if (type == "object") return object(s, path, depth);
        if (type == "array") return array(s, path, depth);
        if (type == "boolean") return r_.one_of({"true", "false"});
        return r_.text("null");
    }

    // --- references and combinations

    Expr reference(const Json& s, const std::string& path, int depth) {
        if (!s.at("$ref").is_string()) refuse(path + "/$ref", "needed a text");
        const auto target = s.at("$ref").get<std::string>();
        Json rest = s;
        rest.erase("$ref");
        for (const std::string& word : annotations()) rest.erase(word);
        if (!rest.empty()) return schema(merge(rest, resolve(target, path), path), path, depth + 1);
        const auto it = references_.find(target);
        if (it != references_.end()) return r_.call(it->second);
        const Rules::Rule rule = references_[target] = r_.add_rule(target);
        r_.define(rule, schema(resolve(target, path), target, depth + 1));
        return r_.call(rule);
    }

    const Json& resolve(const std::string& target, const std::string& path) const {
        if (!target.starts_with('#'))
            refuse(path + "/$ref", "found '" + target + "', needed a place in this schema (#/...)");
        const Json* at = &root_;
        for (size_t i = 1; i < target.size();) {
            if (target[i] != '/') refuse(path + "/$ref", "found '" + target + "', needed #/...");
            const size_t end = std::min(target.find('/', i + 1), target.size());
            const std::string step = unescape(target.substr(i + 1, end - i - 1));
            if (at->is_object() && at->contains(step))
                at = &at->at(step);
            else if (at->is_array() && !step.empty() && step.size() < 6 &&
                     step.find_first_not_of("0123456789") == std::string::npos &&
                     std::stoul(step) < at->size())
                at = &at->at(std::stoul(step));
            else
                refuse(path + "/$ref", "there is no '" + target + "'");
            i = end;
        }
        return *at;
    }

    // ~1 is /, ~0 is ~, %41 is A.
    static std::string unescape(const std::string& step) {
        std::string out;
        for (size_t i = 0; i < step.size(); ++i) {
            if (step[i] == '~' && i + 1 < step.size() &&
                (step[i + 1] == '0' || step[i + 1] == '1')) {
                out += step[++i] == '0' ? '~' : '/';
            } else if (step[i] == '%' && i + 2 < step.size() &&
                       std::isxdigit(static_cast<unsigned char>(step[i + 1])) &&
                       std::isxdigit(static_cast<unsigned char>(step[i + 2]))) {
                out += static_cast<char>(std::stoi(step.substr(i + 1, 2), nullptr, 16));
                i += 2;
            } else {
                out += step[i];
            }
        }
        return out;
    }

    Expr any_of(const Json& s, const char* word, const std::string& path, int depth) {
        const Json& list = s.at(word);
        const std::string here = path + "/" + word;
        if (!list.is_array() || list.empty()) refuse(here, "needed a list of at least one schema");
        Json base = s;
        base.erase(word);
        std::vector<Expr> choices;
        for (size_t i = 0; i < list.size(); ++i) {
            const std::string at = fmt::format("{}/{}", here, i);
            const Json& choice = list[i];
            choices.push_back(restricts(base) ? schema(merge(base, choice, at), at, depth + 1)
                                              : schema(choice, at, depth + 1));
        }
        return r_.any_of(std::move(choices));
    }

    Json all_of(const Json& s, const std::string& path, int depth) {
        const Json& list = s.at("allOf");
        if (!list.is_array()) refuse(path + "/allOf", "needed a list of schemas");
        Json merged = s;
        merged.erase("allOf");
        for (size_t i = 0; i < list.size(); ++i) {
            const std::string at = fmt::format("{}/allOf/{}", path, i);
            Json part = list[i];
            if (depth + static_cast<int>(i) > 10 * kDeepest) refuse(at, "too many parts");
            for (int hops = 0; part.is_object() && part.contains("$ref") && part.size() == 1;)
                if (part = resolve(part.at("$ref").get<std::string>(), at); ++hops > kDeepest)
                    refuse(at, "references lead in a circle");
            if (part.is_object() && part.contains("allOf")) part = all_of(part, at, depth + 1);
            merged = merge(merged, part, at);
        }
        return merged;
    }

    static bool restricts(const Json& s) {
        for (const auto& [word, value] : s.items())
            if (!annotations().contains(word) && !word.starts_with("x-")) return true;
        return false;
    }

    // What both accept.
    Json merge(const Json& a, const Json& b, const std::string& path) const {
        if (b.is_boolean()) return b.get<bool>() ? a : b;
        if (a.is_boolean()) return a.get<bool>() ? b : a;
        if (!a.is_object() || !b.is_object()) refuse(path, "needed a schema");
        if (b.contains("$ref") && restricts(a)) {
            Json rest = b;
            rest.erase("$ref");
            return merge(merge(a, resolve(b.at("$ref").get<std::string>(), path), path), rest,
                         path);
        }
        Json out = a;
        for (const auto& [word, value] : b.items()) {
            if (!out.contains(word) || out.at(word) == value || annotations().contains(word)) {
                out[word] = value;
            } else if (word == "properties") {
                for (const auto& [name, property] : value.items()) {
                    Json& mine = out[word][name];
                    mine = mine.is_null() ? property : merge(mine, property, path + "/" + name);
                }
            } else if (word == "required") {
                for (const Json& name : value)
                    if (std::find(out[word].begin(), out[word].end(), name) == out[word].end())
                        out[word].push_back(name);
            } else if (word == "minimum" || word == "exclusiveMinimum" || word == "minLength" ||
                       word == "minItems" || word == "minProperties") {
                if (out[word] < value) out[word] = value;
            } else if (word == "maximum" || word == "exclusiveMaximum" || word == "maxLength" ||
                       word == "maxItems" || word == "maxProperties") {
                if (value < out[word]) out[word] = value;
            } else if (word == "type") {
                out[word] = common_types(out[word], value, path);
            } else if (word == "enum") {
                Json both = Json::array();
                for (const Json& v : value)
                    if (std::find(out[word].begin(), out[word].end(), v) != out[word].end())
                        both.push_back(v);
                if (both.empty()) return false;
                out[word] = both;
            } else if (word == "items" || word == "additionalProperties") {
                out[word] = merge(out[word], value, path + "/" + word);
            } else {
                refuse(path, "keyword '" + word + "' is given twice with different values");
            }
        }
        return out;
    }

    Json common_types(const Json& a, const Json& b, const std::string& path) const {
        const auto list = [](const Json& t) { return t.is_array() ? t : Json::array({t}); };
        Json out = Json::array();
        for (const Json& x : list(a))
            for (const Json& y : list(b)) {
                if (x == y) out.push_back(x);
                if ((x == "number" && y == "integer") || (x == "integer" && y == "number"))
                    out.push_back("integer");
            }
        if (out.empty()) refuse(path + "/type", "found types that nothing has in common");
        return out;
    }

    Expr values(const Json& s, const Json& list, const std::string& path) {
        const std::vector<std::string> allowed = types(s, path);
        std::vector<std::string> texts;
        for (const Json& v : list) {
            const std::string type = type_of(v);
            const auto has = [&](const char* t) {
                return std::find(allowed.begin(), allowed.end(), t) != allowed.end();
            };
            if (allowed.empty() || !s.contains("type") || has(type.c_str()) ||
                (type == "integer" && has("number")))
                texts.push_back(v.dump());
        }
        return r_.one_of(texts);
    }

    // --- scalars

    int count(const Json& s, const char* word, int otherwise, const std::string& path) const {
        if (!s.contains(word)) return otherwise;
        const Json& v = s.at(word);
        if (!v.is_number() || v.get<double>() < 0 || std::floor(v.get<double>()) != v.get<double>())
            refuse(path + "/" + word, "found " + v.dump() + ", needed a whole number, 0 or more");
        return static_cast<int>(std::min<double>(v.get<double>(), kMostCount));
    }

    Expr string(const Json& s, const std::string& path) {
        const int min = count(s, "minLength", 0, path),
                  max = count(s, "maxLength", Rules::kNoLimit, path);
        const bool limited = s.contains("minLength") || s.contains("maxLength");
        if (s.contains("maxLength") && max < min) return r_.never();
        if (s.contains("pattern")) {
            if (limited)
                refuse(path, "'pattern' beside 'minLength' or 'maxLength' is not supported");
            if (!s.at("pattern").is_string()) refuse(path + "/pattern", "needed a text");
            try {
                return text_.quoted(
                    regex_expr(r_, s.at("pattern").get<std::string>(),
                               {.search = true, .chars = [this](Rules&, const CharSet& set) {
                                    return text_.string_char(set);
                                }}));
            } catch (const Error& e) {
                refuse(path + "/pattern", e.what());
            }
        }
        // An unknown format is an annotation, as the standard has it.
        if (s.contains("format") && s.at("format").is_string() && !limited) {
            const auto format = s.at("format").get<std::string>();
            if (is_json_format(format)) return text_.quoted(json_format(r_, format));
        }
        return text_.string(min, max);
    }

    std::optional<NumberLimit> limit(const Json& s, const char* word, const char* excluding,
                                     bool low, const std::string& path) const {
        std::optional<NumberLimit> out;
        const auto take = [&](const char* which, bool excluded) {
            if (!s.contains(which)) return;
            const Json& v = s.at(which);
            if (v.is_boolean()) {  // draft 4
                if (excluded && v.get<bool>() && out) out->excluded = true;
                return;
            }
            if (!v.is_number() || !std::isfinite(v.get<double>()))
                refuse(path + "/" + which, "found " + v.dump() + ", needed a number");
            const auto x = v.get<double>();
            const bool tighter =
                !out || (low ? x > out->value : x < out->value) || (x == out->value && excluded);
            if (tighter) out = NumberLimit{x, excluded};
        };
        take(word, false);
        take(excluding, true);
        return out;
    }
    NumberLimits limits(const Json& s, const std::string& path) const {
        return {limit(s, "minimum", "exclusiveMinimum", true, path),
                limit(s, "maximum", "exclusiveMaximum", false, path)};
    }

    Expr integer(const Json& s, const std::string& path) {
        const NumberLimits l = limits(s, path);
        if (!s.contains("multipleOf") || s.at("multipleOf") == 1) return json_integer(r_, l);
        const Json& m = s.at("multipleOf");
        const double divisor = m.is_number() ? m.get<double>() : 0;
        if (divisor < 1 || divisor > kLargestDivisor || std::floor(divisor) != divisor || l.any())
            refuse(path + "/multipleOf",
                   fmt::format("found {}{}, supported are whole numbers up to {} without limits",
                               m.dump(), l.any() ? " beside limits" : "", kLargestDivisor));
        return json_multiple(r_, static_cast<int>(divisor));
    }

    Expr number(const Json& s, const std::string& path) {
        const NumberLimits l = limits(s, path);
        if (!s.contains("multipleOf")) return json_number(r_, l);
        const Json& m = s.at("multipleOf");
        const double step = m.is_number() ? m.get<double>() : 0;
        if (step >= 1) return integer(s, path);
        for (int places = 1; places <= 12 && !l.any(); ++places)
            if (step == std::stod(fmt::format("1e-{}", places))) return json_decimal(r_, places);
        refuse(path + "/multipleOf",
               "found " + m.dump() +
                   ", supported are whole numbers and 0.1, 0.01 and so on, without "
                   "limits");
    }

    // --- arrays

    Expr array(const Json& s, const std::string& path, int depth) {
        const int min = count(s, "minItems", 0, path);
        int max = count(s, "maxItems", Rules::kNoLimit, path);
        const bool limited = s.contains("maxItems");
        if (s.value("uniqueItems", false) && !(limited && max <= 1))
            refuse(path, "keyword 'uniqueItems' is not supported");
        Json first = s.value("prefixItems", Json::array());
        Json rest = s.contains("items") ? s.at("items") : Json(true);
        if (rest.is_array()) {  // before 2020-12
            first = rest;
            rest = s.value("additionalItems", Json(true));
        }
        if (!first.is_array()) refuse(path + "/prefixItems", "needed a list of schemas");
        if (limited && max < min) return r_.never();
        if (first.empty()) {
            if (rest.is_boolean() && !rest.get<bool>()) max = 0;
            if (max == 0 && min == 0) return text_.list("[", r_.never(), 0, 0, "]");
            const Rules::Rule item = r_.add_rule(path + "/items");
            r_.define(item, schema(rest, path + "/items", depth + 1));
            return text_.list("[", r_.call(item), min, limited ? max : Rules::kNoLimit, "]");
        }
        return tuple(first, rest, min, limited ? max : -1, path, depth);
    }

    Expr tuple(const Json& first, const Json& rest, int min, int max, const std::string& path,
               int depth) {
        const bool open = !(rest.is_boolean() && !rest.get<bool>());
        const auto fixed = static_cast<int>(first.size());
        Expr tail = r_.empty();
        if (open && (max < 0 || max > fixed)) {
            const Rules::Rule item = r_.add_rule(path + "/items");
            r_.define(item, schema(rest, path + "/items", depth + 1));
            tail = r_.repeat(r_.sequence({text_.comma(), r_.call(item)}), std::max(0, min - fixed),
                             max < 0 ? Rules::kNoLimit : max - fixed);
        } else if (min > fixed) {
            return r_.never();
        }
        // From the last item to the first, each with what may follow it.
        for (int i = fixed - 1; i >= 0; --i) {
            const std::string at = fmt::format("{}/prefixItems/{}", path, i);
            Expr item = schema(first[static_cast<size_t>(i)], at, depth + 1);
            if (i > 0) item = r_.sequence({text_.comma(), item});
            const Expr more = r_.sequence({item, tail});
            if (max >= 0 && i >= max)
                tail = r_.empty();
            else
                tail = i >= min ? r_.optional(more) : more;
        }
        return r_.sequence({r_.text("["), text_.space(), tail, text_.space(), r_.text("]")});
    }

    // --- objects

    struct Property {
        std::string name;
        Expr member = -1;
        bool required = false;
    };

    Expr object(const Json& s, const std::string& path, int depth) {
        std::vector<Property> properties = declared(s, path, depth);
        const int min = count(s, "minProperties", 0, path),
                  max = count(s, "maxProperties", Rules::kNoLimit, path);
        const bool limited = s.contains("maxProperties");
        const Expr extra = additional(s, properties, path, depth);
        if (properties.empty()) {
            if (extra < 0) return min > 0 ? r_.never() : text_.list("{", r_.never(), 0, 0, "}");
            if (limited && max < min) return r_.never();
            return text_.list("{", extra, min, limited ? max : Rules::kNoLimit, "}");
        }
        const auto required = std::count_if(properties.begin(), properties.end(),
                                            [](const auto& p) { return p.required; });
        if (min > required || (limited && max < static_cast<int>(properties.size())))
            refuse(path,
                   "'minProperties' and 'maxProperties' beside 'properties' are not supported");
        return members(properties, extra, path);
    }

    std::vector<Property> declared(const Json& s, const std::string& path, int depth) {
        std::vector<Property> out;
        std::set<std::string> required;
        if (s.contains("required") && !s.at("required").is_boolean()) {
            if (!s.at("required").is_array()) refuse(path + "/required", "needed a list of names");
            for (const Json& name : s.at("required")) {
                if (!name.is_string()) refuse(path + "/required", "needed a list of names");
                required.insert(name.get<std::string>());
            }
        }
        const auto add = [&](const std::string& name, const Json& value, const std::string& at) {
            const Rules::Rule rule = r_.add_rule(at);
            r_.define(rule, text_.member(text_.literal(name), schema(value, at, depth + 1)));
            out.push_back({name, r_.call(rule), required.contains(name)});
            required.erase(name);
        };
        if (s.contains("properties")) {
            if (!s.at("properties").is_object())
                refuse(path + "/properties", "needed an object of schemas");
            for (const auto& [name, value] : s.at("properties").items()) {
                const std::string at = path + "/properties/" + name;
                if (value.is_boolean() && !value.get<bool>()) {
                    if (required.contains(name)) refuse(at, "is required and never valid");
                    continue;
                }
                add(name, value, at);
            }
        }
        // What is required and not described follows additionalProperties.
        const Json other =
            s.contains("additionalProperties") ? s.at("additionalProperties") : Json(true);
        for (const std::string& name : std::set<std::string>(required)) {
            if (other.is_boolean() && !other.get<bool>())
                refuse(path + "/required", "'" + name + "' is required and not among 'properties'");
            add(name, other, path + "/required/" + name);
        }
        return out;
    }

    // A member besides the declared ones; -1: there may be none.
    Expr additional(const Json& s, const std::vector<Property>& properties, const std::string& path,
                    int depth) {
        std::vector<Expr> choices;
        const Json patterns = s.value("patternProperties", Json::object());
        // Without a word about more, an object that describes its members has no others.
        const Json other = s.contains("additionalProperties")
                               ? s.at("additionalProperties")
                               : Json(properties.empty() && patterns.empty());
        const bool closed = other.is_boolean() && !other.get<bool>();
        if (!patterns.empty() && !closed && s.contains("additionalProperties"))
            refuse(path, "'patternProperties' beside 'additionalProperties' is not supported");
        for (const auto& [pattern, value] : patterns.items()) {
            const Expr key = text_.quoted(regex_expr(
                r_, pattern, {.search = true, .chars = [this](Rules&, const CharSet& set) {
                                  return text_.string_char(set);
                              }}));
            choices.push_back(text_.member(
                key, schema(value, path + "/patternProperties/" + pattern, depth + 1)));
        }
        if (!closed) {
            Expr key = text_.string();
            if (s.contains("propertyNames")) {
                if (!properties.empty())
                    refuse(path, "'propertyNames' beside 'properties' is not supported");
                Json names = s.at("propertyNames");
                if (names.is_object() && !names.contains("type") && !names.contains("enum") &&
                    !names.contains("const") && !names.contains("$ref"))
                    names["type"] = "string";
                key = schema(names, path + "/propertyNames", depth + 1);
            } else if (!properties.empty()) {
                std::vector<std::string> taken;
                for (const Property& p : properties) taken.push_back(p.name);
                key = text_.string_except(taken);
            }
            choices.push_back(
                text_.member(key, schema(other, path + "/additionalProperties", depth + 1)));
        }
        if (choices.empty()) return -1;
        return r_.call(r_.add_rule(path + "/additionalProperties", r_.any_of(std::move(choices))));
    }

    // Declared members in order, then others. `first[i]` and `later[i]` are what may stand from
    // member i on when none, or some, stood before.
    Expr members(const std::vector<Property>& properties, Expr extra, const std::string& path) {
        const Expr more =
            extra < 0 ? r_.empty() : r_.repeat(r_.sequence({text_.comma(), extra}), 0);
        Expr first = extra < 0 ? r_.empty() : r_.optional(r_.sequence({extra, more}));
        Expr later = more;
        for (size_t i = properties.size(); i-- > 0;) {
            const Property& p = properties[i];
            const std::string at = path + "/" + p.name;
            const Expr rest = r_.call(r_.add_rule(at + " and later", later));
            const Expr without = r_.call(r_.add_rule("from " + at, first));
            const Expr here = r_.sequence({p.member, rest});
            const Expr next = r_.sequence({text_.comma(), p.member, rest});
            first = p.required ? here : r_.any_of({here, without});
            later = p.required ? next : r_.any_of({next, rest});
        }
        return r_.sequence({r_.text("{"), text_.space(), first, text_.space(), r_.text("}")});
    }

    Rules& r_;
    JsonText text_;
    const Json& root_;
    std::map<std::string, Rules::Rule> references_;
};

}  // namespace

Rules::Expr json_schema_expr(Rules& rules, const Json& schema) {
    try {
        return Compiler(rules, schema).schema(schema, "", 0);
    } catch (const Json::exception& e) {
        // A keyword with a value of another type than those that are looked at one by one.
        throw Error(Errc::invalid_argument, {}, fmt::format("JSON schema: {}", e.what()));
    }
}

}  // namespace exl3
