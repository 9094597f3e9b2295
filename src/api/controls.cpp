// The sampling and output fields that the generating routes share.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "api/fields.h"
#include "api/request.h"

namespace exl3::api {
namespace {

constexpr double kAny = std::numeric_limits<double>::max();
constexpr int64_t kTokens = int64_t{1} << 31;

std::vector<std::string_view> names_of(const ParamInfo& info) {
    std::vector<std::string_view> names{info.name};
    std::string_view rest = info.aliases;
    while (!rest.empty()) {
        const size_t space = rest.find(' ');
        names.push_back(rest.substr(0, space));
        rest = space == std::string_view::npos ? "" : rest.substr(space + 1);
    }
    return names;
}

// Ids a request names, checked against the vocabulary.
std::vector<int32_t> token_ids(const Fields& f, std::string_view name, int vocab) {
    std::vector<int32_t> ids;
    for (const int64_t id : f.integers({name})) {
        if (id < 0 || id > INT32_MAX || (vocab > 0 && id >= vocab))
            f.fail(name, fmt::format("found token {}, needed {}", id,
                                     vocab > 0 ? fmt::format("0 to {}", vocab - 1) : "0 or more"));
        ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
}

// dry_sequence_breakers: a list, a list as JSON text, or text with commas; what cannot be read so
// is an empty list, as front ends expect.
std::vector<std::string> read_breakers(const Fields& f, std::string_view name) {
    const Json& value = *f.find({name});
    if (!value.is_string()) return f.texts({name});
    const std::string text = value.get<std::string>();
    std::vector<std::string> all;
    if (text.starts_with('[')) {
        auto list = parse_json(text, std::string(name));
        if (list && list->is_array())
            for (const Json& item : *list)
                if (item.is_string()) all.push_back(item.get<std::string>());
        return all;
    }
    for (size_t at = 0; at <= text.size();) {
        const size_t comma = std::min(text.find(',', at), text.size());
        if (comma > at) all.push_back(text.substr(at, comma - at));
        at = comma + 1;
    }
    return all;
}

// One knob of the sampler's table, under the name the request uses.
void read_knob(const Fields& f, const ParamInfo& info, std::string_view name, int vocab,
               SamplerParams& p) {
    using P = SamplerParams;
    const Json& value = *f.find({name});
    if (const auto* real = std::get_if<double P::*>(&info.field)) {
        p.** real = *f.number({name}, -kAny, kAny);
    } else if (const auto* whole = std::get_if<int P::*>(&info.field)) {
        p.** whole = static_cast<int>(*f.integer({name}, INT32_MIN, INT32_MAX));
    } else if (const auto* flag = std::get_if<bool P::*>(&info.field)) {
        p.** flag = *f.flag({name});
    } else if (const auto* ids = std::get_if<std::vector<int32_t> P::*>(&info.field)) {
        p.** ids = token_ids(f, name, vocab);
    } else if (const auto* texts = std::get_if<std::vector<std::string> P::*>(&info.field)) {
        p.** texts = name == "dry_sequence_breakers" ? read_breakers(f, name) : f.texts({name});
    } else {
        // Any 64-bit number seeds; -1 is how several front ends write "random".
        if (value.is_number_unsigned()) {
            p.seed = value.get<uint64_t>();
        } else {
            const int64_t seed = *f.integer({name}, INT64_MIN, INT64_MAX);
            p.seed = seed == -1 ? std::nullopt : std::optional(static_cast<uint64_t>(seed));
        }
    }
}

void read_bias(const Fields& f, int vocab, SamplerParams& p) {
    const Json* bias = f.object({"logit_bias"});
    if (!bias) return;
    for (const auto& [key, value] : bias->items()) {
        const std::string path = f.at("logit_bias") + "." + key;
        int64_t id = -1;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (error != std::errc() || end != key.data() + key.size() || id < 0 ||
            id > (vocab > 0 ? vocab - 1 : INT32_MAX))
            throw bad_field(path, fmt::format("found no token id, needed 0 to {}", vocab - 1));
        if (!value.is_number() || !(std::abs(value.get<double>()) <= 100))
            throw bad_field(
                path, fmt::format("found {}, needed a number from -100 to 100", to_text(value)));
        p.logit_bias.emplace_back(static_cast<int32_t>(id), value.get<double>());
    }
}

SamplerParams read_sampler(const Fields& f, const RequestDefaults& defaults) {
    SamplerParams p = defaults.sampler;
    for (const ParamInfo& info : sampler_param_table()) {
        if (info.name == "logprobs") continue;  // each protocol has its own
        for (const std::string_view name : names_of(info))
            if (f.has({name})) {
                read_knob(f, info, name, defaults.vocab, p);
                break;
            }
    }
    // Dynamic temperature as a half width around the temperature.
    if (const auto range = f.number({"dynatemp_range"}, 0, 10); range && *range > 0) {
        p.min_temp = std::max(0.0, p.temperature - *range);
        p.max_temp = p.temperature + *range;
    }
    read_bias(f, defaults.vocab, p);
    if (auto error = check_params(p, defaults.vocab)) {
        // "sampling: top_p: found 3: allowed from 0 to 1"
        const std::string text = error->what();
        const std::string rest = text.substr(text.find(": ") + 2);
        const std::string name = rest.substr(0, rest.find(':'));
        throw ApiError(400, rest, name);
    }
    return p;
}

// Stops are texts, or lists of texts and token ids.
void read_stops(const Fields& f, const RequestDefaults& defaults, OutputControls& c) {
    for (const std::string_view name : {"stop", "stop_sequence", "stop_sequences"}) {
        const Json* value = f.find({name});
        if (!value) continue;
        if (!value->is_array()) {
            c.stop = f.texts({name});
        } else {
            for (const Json& item : *value) {
                if (item.is_string())
                    c.stop.push_back(item.get<std::string>());
                else if (item.is_number_integer() && item >= 0 && item <= INT32_MAX)
                    c.stop_tokens.push_back(item.get<int32_t>());
                else
                    f.fail(name, fmt::format("found {} in the list, needed strings or token ids",
                                             kind_of(item)));
            }
        }
        break;
    }
    std::erase(c.stop, std::string());
    if (c.stop.size() > defaults.max_stop_strings)
        f.fail("stop", fmt::format("found {} strings, needed at most {}", c.stop.size(),
                                   defaults.max_stop_strings));
    for (const int32_t id : token_ids(f, "stop_token_ids", defaults.vocab))
        c.stop_tokens.push_back(id);
    c.keep_stop = f.flag({"include_stop_str_in_output"}).value_or(false);
}

// The many ways to ask for structured output; at most one may be used.
class FormatReader {
public:
    explicit FormatReader(const Fields& fields) : f_(fields) {}
    std::optional<OutputFormat> read() {
        using Kind = OutputFormat::Kind;
        if (f_.has({"response_format"})) response_format();
        add_schema("json_schema");
        add_schema("guided_json");
        add_text("regex_pattern", Kind::regex);
        add_text("guided_regex", Kind::regex);
        add_text("grammar_string", Kind::grammar);
        add_text("grammar", Kind::grammar);
        add_text("guided_grammar", Kind::grammar);
        if (const Json* choice = f_.array({"guided_choice"}); choice && !choice->empty())
            add("guided_choice", Kind::choice, *choice);
        if (const Json* outputs = f_.object({"structured_outputs"})) {
            FormatReader inner(Fields(*outputs, "structured_outputs"));
            inner.vllm();
            for (auto& found : inner.found_) found_.push_back(std::move(found));
        }
        if (found_.size() > 1)
            throw bad_field(found_[1].param,
                            "found a second output format, needed one at most "
                            "(the first is " +
                                found_[0].param + ")");
        if (found_.empty()) return {};
        return std::move(found_[0]);
    }

private:
    using Kind = OutputFormat::Kind;
    void add(std::string_view name, Kind kind, Json value, bool strict = false) {
        found_.push_back({kind, f_.at(name), std::move(value), strict});
    }
    void add_text(std::string_view name, Kind kind) {
        if (const auto text = f_.text({name}); text && !text->empty()) add(name, kind, *text);
    }
    // A schema, or one written as text. Kept under the top-level names of several servers.
    void add_schema(std::string_view name) {
        const Json* value = f_.find({name});
        if (!value) return;
        if (value->is_string()) {
            if (value->get<std::string>().empty()) return;
            auto parsed = parse_json(value->get<std::string>(), f_.at(name));
            if (!parsed) throw bad_field(f_.at(name), parsed.error().what());
            add(name, Kind::json_schema, std::move(*parsed));
        } else if (value->is_object() || value->is_boolean()) {
            add(name, Kind::json_schema, *value);
        } else {
            f_.fail(name, fmt::format("found {}, needed a JSON schema", kind_of(*value)));
        }
    }
    void vllm() {
        add_schema("json");
        add_text("regex", Kind::regex);
        add_text("grammar", Kind::grammar);
        if (const Json* choice = f_.array({"choice"})) add("choice", Kind::choice, *choice);
        if (f_.flag({"json_object"}).value_or(false)) add("json_object", Kind::json_object, {});
        if (const Json* tag = f_.find({"structural_tag"}))
            add("structural_tag", Kind::structural_tag, *tag);
    }
    void response_format() {
        const Fields format(*f_.object({"response_format"}), f_.at("response_format"));
        const std::string type = format.need_text("type");
        const auto found = [&](std::string_view name, Kind kind, Json value, bool strict = false) {
            found_.push_back({kind, format.at(name), std::move(value), strict});
        };
        if (type == "text") return;
        if (type == "json_object" || type == "json") {
            if (const Json* schema = format.find({"schema", "json_schema"}))
                found("schema", Kind::json_schema, *schema);
            else
                found("type", Kind::json_object, {});
        } else if (type == "json_schema") {
            const Json* outer = format.object({"json_schema", "schema"});
            if (!outer) format.fail("json_schema", "missing, needed an object with a schema");
            const auto inner = outer->find("schema");
            const bool wrapped = inner != outer->end() && !inner->is_null() &&
                                 !outer->contains("type") && !outer->contains("properties");
            const auto strict = outer->find("strict");
            found("json_schema", Kind::json_schema, wrapped ? *inner : *outer,
                  strict != outer->end() && *strict == true);
        } else if (type == "regex") {
            found("regex", Kind::regex, format.text({"regex", "pattern"}).value_or(""));
        } else if (type == "grammar") {
            found("grammar", Kind::grammar, format.need_text("grammar"));
        } else if (type == "structural_tag") {
            found("structural_tag", Kind::structural_tag, format.json());
        } else {
            format.fail("type", fmt::format("found '{}', needed text, json_object, json_schema, "
                                            "regex, grammar or structural_tag",
                                            type));
        }
    }

    Fields f_;
    std::vector<OutputFormat> found_;
};

void read_limits(const Fields& f, OutputControls& c) {
    // -1 and null mean "as much as fits" in every server that has them.
    const auto limit = f.integer(
        {"max_completion_tokens", "max_tokens", "max_output_tokens", "max_length", "n_predict"}, -1,
        kTokens);
    if (limit && *limit >= 0) c.max_tokens = limit;
    c.min_tokens = f.integer({"min_tokens", "min_length"}, 0, kTokens).value_or(0);
    if (c.max_tokens && c.min_tokens > *c.max_tokens)
        f.fail("min_tokens",
               fmt::format("found {}, needed at most max_tokens, {}", c.min_tokens, *c.max_tokens));
}

void read_reasoning_budget(const Fields& f, OutputControls& c) {
    auto budget = f.integer(
        {"reasoning_budget_tokens", "reasoning_budget", "thinking_budget", "thinking_token_budget"},
        INT32_MIN, kTokens);
    for (const auto& [name, inner] :
         {std::pair{"thinking", "budget_tokens"}, std::pair{"reasoning", "max_tokens"}})
        if (const Json* object = f.find({name}); object && object->is_object() && !budget)
            budget = Fields(*object, f.at(name)).integer({inner}, INT32_MIN, kTokens);
    if (budget && *budget >= 0) c.reasoning_budget = budget;
    c.reasoning_budget_message = f.text({"reasoning_budget_message"}).value_or("");
}

}  // namespace

OutputControls read_controls(const Json& request, const RequestDefaults& defaults) {
    const Fields f(request, "");
    OutputControls c;
    c.sampler = read_sampler(f, defaults);
    read_limits(f, c);
    read_stops(f, defaults, c);
    c.ignore_eos = f.flag({"ignore_eos", "ban_eos_token"}).value_or(false);
    c.skip_special = f.flag({"skip_special_tokens"}).value_or(true);
    c.add_bos = f.flag({"add_bos_token"}).value_or(true);
    c.token_healing = f.flag({"token_healing"}).value_or(false);
    c.banned_strings = f.texts({"banned_strings", "bad_words"});
    std::erase(c.banned_strings, std::string());
    if (c.banned_strings.size() > defaults.max_stop_strings)
        f.fail("banned_strings", fmt::format("found {} strings, needed at most {}",
                                             c.banned_strings.size(), defaults.max_stop_strings));
    c.priority = static_cast<int>(f.integer({"priority"}, -1000000, 1000000).value_or(0));
    c.n = static_cast<int>(f.integer({"n"}, 1, defaults.max_choices).value_or(1));
    read_reasoning_budget(f, c);
    c.format = FormatReader(f).read();
    return c;
}

void read_stream_fields(const Json& request, GenerationRequest& out) {
    const Fields f(request, "");
    out.model = f.text({"model"}).value_or("");
    out.stream = f.flag({"stream"}).value_or(false);
    if (const Json* options = f.object({"stream_options"})) {
        const Fields o(*options, "stream_options");
        out.include_usage = o.flag({"include_usage"}).value_or(false);
        out.continuous_usage = o.flag({"continuous_usage_stats"}).value_or(false);
    }
}

}  // namespace exl3::api
