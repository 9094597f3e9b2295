#include "api/reply.h"

#include <algorithm>
#include <cmath>

#include "api/fields.h"

namespace exl3::api {

Reply::Reply(ReplyHead head)
    : head_(std::move(head)), choices_(static_cast<size_t>(head_.choices)) {}

std::string Reply::deltas(int choice, std::span<const OutputEvent> events,
                          std::span<const TokenReport> tokens, const Usage& usage) {
    Choice& c = choices_[static_cast<size_t>(choice)];
    std::string out;
    c.tokens.insert(c.tokens.end(), tokens.begin(), tokens.end());
    for (const OutputEvent& e : events) {
        switch (e.kind) {
            case OutputEvent::Kind::reasoning: c.reasoning += e.text; break;
            case OutputEvent::Kind::content: c.content += e.text; break;
            case OutputEvent::Kind::call_start: c.calls.push_back({e.id, e.name, ""}); break;
            case OutputEvent::Kind::call_arguments: c.calls.back().arguments += e.text; break;
            case OutputEvent::Kind::call_end: break;
        }
        if (!head_.stream) continue;
        // Tokens go with the next piece of content; white space that waits has none of its own.
        std::span<const TokenReport> fresh;
        if (e.kind == OutputEvent::Kind::content) {
            fresh = std::span(c.tokens).subspan(c.tokens_shown);
            c.tokens_shown = c.tokens.size();
        }
        out += show(choice, e, fresh, usage);
    }
    return out;
}

std::string Reply::end_choice(int choice, const ChoiceEnd& end, const Usage& usage) {
    Choice& c = choices_[static_cast<size_t>(choice)];
    c.ended = true;
    c.end = end;
    if (!head_.stream) return {};
    return show_end(choice, std::span(c.tokens).subspan(c.tokens_shown), usage);
}

bool Reply::is_custom(const std::string& tool) const {
    return std::find(head_.custom_tools.begin(), head_.custom_tools.end(), tool) !=
           head_.custom_tools.end();
}

std::string Reply::custom_input(const Call& call) {
    auto parsed = parse_json(call.arguments, "arguments");
    if (parsed && parsed->is_object() && parsed->contains("input") &&
        parsed->at("input").is_string())
        return parsed->at("input").get<std::string>();
    return call.arguments;
}

std::string sse(const Json& data, std::string_view name) {
    std::string out;
    if (!name.empty()) out.append("event: ").append(name).append("\n");
    return out.append("data: ").append(to_text(data)).append("\n\n");
}

Json usage_json(const Usage& u) {
    const auto rate = [](int64_t tokens, double seconds) {
        return seconds > 0 ? Json(static_cast<double>(tokens) / seconds) : Json();
    };
    return {{"prompt_tokens", u.prompt_tokens},
            {"completion_tokens", u.completion_tokens},
            {"total_tokens", u.prompt_tokens + u.completion_tokens},
            {"prompt_tokens_details", {{"cached_tokens", u.cached_tokens}, {"audio_tokens", 0}}},
            {"completion_tokens_details",
             {{"reasoning_tokens", u.reasoning_tokens},
              {"accepted_prediction_tokens", u.accepted_draft_tokens},
              {"rejected_prediction_tokens", u.rejected_draft_tokens},
              {"audio_tokens", 0}}},
            {"prompt_time", u.prompt_seconds},
            {"prompt_tokens_per_sec", rate(u.prompt_tokens - u.cached_tokens, u.prompt_seconds)},
            {"completion_time", u.completion_seconds},
            {"completion_tokens_per_sec", rate(u.completion_tokens, u.completion_seconds)},
            {"total_time", u.queue_seconds + u.prompt_seconds + u.completion_seconds}};
}

double finite_logprob(double logprob) {
    constexpr double kLeast = -9999;
    return std::isfinite(logprob) ? std::max(logprob, kLeast) : kLeast;
}

std::string readable(std::string_view bytes) {
    // dump() replaces what is not UTF-8; the quotes and escapes it adds are undone by parsing.
    return Json::parse(to_text(Json(std::string(bytes)))).get<std::string>();
}

}  // namespace exl3::api
