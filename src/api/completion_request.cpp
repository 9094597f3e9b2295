#include <fmt/format.h>

#include "api/fields.h"
#include "api/request.h"

namespace exl3::api {
namespace {

using Prompt = std::variant<std::string, std::vector<int32_t>>;
constexpr size_t kMaxPrompts = 1024;

bool all_numbers(const Json& list) {
    for (const Json& item : list)
        if (!item.is_number()) return false;
    return !list.empty();
}

Prompt read_ids(const Json& list, const std::string& path, int vocab) {
    std::vector<int32_t> ids;
    for (const Json& item : list) {
        if (!item.is_number_integer() || item < 0 || item > INT32_MAX ||
            (vocab > 0 && item >= vocab))
            throw bad_field(
                fmt::format("{}[{}]", path, ids.size()),
                fmt::format("found {}, needed a token id below {}", to_text(item), vocab));
        ids.push_back(item.get<int32_t>());
    }
    return ids;
}

std::vector<Prompt> read_prompts(const Fields& f, const RequestDefaults& defaults) {
    const Json* value = f.find({"prompt"});
    if (!value) f.fail("prompt", "missing, needed a string or token ids");
    if (value->is_string()) return {value->get<std::string>()};
    if (!value->is_array() || value->empty())
        f.fail("prompt", fmt::format("found {}, needed a string, token ids, or a list of these",
                                     value->is_array() ? "an empty list" : kind_of(*value)));
    if (all_numbers(*value)) return {read_ids(*value, "prompt", defaults.vocab)};
    if (value->size() > kMaxPrompts)
        f.fail("prompt",
               fmt::format("found {} prompts, needed at most {}", value->size(), kMaxPrompts));
    std::vector<Prompt> all;
    for (const Json& item : *value) {
        const std::string path = fmt::format("prompt[{}]", all.size());
        if (item.is_string())
            all.emplace_back(item.get<std::string>());
        else if (item.is_array())
            all.push_back(read_ids(item, path, defaults.vocab));
        else
            throw bad_field(path,
                            fmt::format("found {}, needed a string or token ids", kind_of(item)));
    }
    return all;
}

// true asks for the sampled token alone, a number for that many alternatives as well.
void read_logprobs(const Fields& f, OutputControls& c) {
    const Json* value = f.find({"logprobs"});
    if (!value) return;
    if (value->is_boolean()) {
        c.logprobs = value->get<bool>();
        return;
    }
    c.logprobs = true;
    c.top_logprobs = static_cast<int>(*f.integer({"logprobs"}, 0, 20));
}

}  // namespace

GenerationRequest read_completion(const Json& request, const RequestDefaults& defaults) {
    const Fields f(request, "");
    GenerationRequest r;
    read_stream_fields(request, r);
    r.output = read_controls(request, defaults);
    r.prompts = read_prompts(f, defaults);
    if (static_cast<int64_t>(r.prompts.size()) * r.output.n > int64_t{defaults.max_choices} * 8)
        f.fail("n", fmt::format("found {} answers for {} prompts, needed at most {} in all",
                                r.output.n, r.prompts.size(), defaults.max_choices * 8));
    read_logprobs(f, r.output);
    r.echo = f.flag({"echo"}).value_or(false);
    r.suffix = f.text({"suffix"}).value_or("");
    r.best_of = static_cast<int>(
        f.integer({"best_of"}, r.output.n, defaults.max_choices).value_or(r.output.n));
    if (r.best_of > r.output.n && r.stream)
        f.fail("best_of", fmt::format("found {}, needed n, {}: a stream cannot wait for the best",
                                      r.best_of, r.output.n));
    r.parse_reasoning = false;
    r.tool_choice.mode = ToolChoice::Mode::none;
    return r;
}

}  // namespace exl3::api
