#pragma once
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "io/json.h"

namespace exl3::api {

/// Whose rules a route follows: the shape of its errors and of its model list.
enum class Family { openai, anthropic };

/// A request that cannot be answered. The status says what kind of failure it is; error_body()
/// words it as the client's protocol wants it.
class ApiError : public std::exception {
public:
    /// @param status   HTTP status, 400 or above
    /// @param message  for a person: what was found and what was needed
    /// @param param    the field at fault ("messages[2].content"); empty if there is none
    /// @param code     what programs look for ("context_length_exceeded"); empty if there is none
    ApiError(int status, std::string message, std::string param = {}, std::string code = {});

    const char* what() const noexcept override { return message_.c_str(); }
    int status() const { return status_; }
    const std::string& message() const { return message_; }
    const std::string& param() const { return param_; }
    const std::string& code() const { return code_; }
    /// Members that stand beside the message in the OpenAI shape ("n_ctx").
    Json details = Json::object();

private:
    int status_;
    std::string message_, param_, code_;
};

/// 400 naming the field: "max_tokens: found -3, needed 0 or more".
ApiError bad_field(std::string_view field, std::string_view what);
/// The status that an Error of the engine means, with its text.
ApiError from_error(const Error& error);
/// 400 whose text and code tell every client that the prompt does not fit.
ApiError prompt_too_long(int64_t prompt_tokens, int64_t max_tokens, int64_t context);

/// The reply's JSON. OpenAI: {"error": {message, type, param, code}, "detail": message};
/// Anthropic: {"type": "error", "error": {type, message}, "request_id"}.
Json error_body(const ApiError& error, Family family, std::string_view request_id);
/// "invalid_request_error", "rate_limit_error", ... as the family names the status.
std::string_view error_type(int status, Family family);

}  // namespace exl3::api
