#include "api/error.h"

#include <fmt/format.h>

#include <array>

namespace exl3::api {
namespace {

struct StatusNames {
    int status;
    std::string_view openai, anthropic;
};
constexpr std::array kNames = {
    StatusNames{400, "invalid_request_error", "invalid_request_error"},
    StatusNames{401, "authentication_error", "authentication_error"},
    StatusNames{403, "permission_error", "permission_error"},
    StatusNames{404, "not_found_error", "not_found_error"},
    StatusNames{413, "invalid_request_error", "request_too_large"},
    StatusNames{429, "rate_limit_error", "rate_limit_error"},
    StatusNames{503, "service_unavailable", "overloaded_error"},
};

}  // namespace

ApiError::ApiError(int status, std::string message, std::string param, std::string code)
    : status_(status),
      message_(std::move(message)),
      param_(std::move(param)),
      code_(std::move(code)) {}

ApiError bad_field(std::string_view field, std::string_view what) {
    return {400, fmt::format("{}: {}", field, what), std::string(field)};
}

ApiError from_error(const Error& error) {
    switch (error.code()) {
        case Errc::invalid_argument:
        case Errc::unsupported:
        case Errc::invalid_file: return {400, error.what()};
        case Errc::out_of_memory:
        case Errc::device:
        case Errc::cancelled: return {503, error.what()};
        case Errc::io: break;
    }
    return {500, error.what()};
}

ApiError prompt_too_long(int64_t prompt_tokens, int64_t max_tokens, int64_t context) {
    ApiError e(
        400,
        fmt::format("prompt is too long: {} tokens > {} maximum. This model's maximum context "
                    "length is {} tokens; the request ({} tokens in the prompt, {} for the "
                    "answer) exceeds the available context size",
                    prompt_tokens, context, context, prompt_tokens, max_tokens),
        "messages", "context_length_exceeded");
    e.details["n_prompt_tokens"] = prompt_tokens;
    e.details["n_ctx"] = context;
    return e;
}

std::string_view error_type(int status, Family family) {
    for (const StatusNames& n : kNames)
        if (n.status == status) return family == Family::openai ? n.openai : n.anthropic;
    if (status < 500) return "invalid_request_error";
    return family == Family::openai ? "server_error" : "api_error";
}

Json error_body(const ApiError& error, Family family, std::string_view request_id) {
    const std::string type(error_type(error.status(), family));
    const auto text_or_null = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
    if (family == Family::anthropic)
        return {{"type", "error"},
                {"error", {{"type", type}, {"message", error.message()}}},
                {"request_id", std::string(request_id)}};
    Json inner = {{"message", error.message()},
                  {"type", type},
                  {"param", text_or_null(error.param())},
                  {"code", text_or_null(error.code())}};
    for (const auto& [key, value] : error.details.items()) inner[key] = value;
    return {{"error", inner}, {"detail", error.message()}};
}

}  // namespace exl3::api
