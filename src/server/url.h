#pragma once
#include <string>
#include <string_view>

namespace exl3::server {

/// Splits "/v1/models/a%20b/?x=1" into the decoded path, without a slash at its end, and the query.
void split_target(std::string_view target, std::string& path, std::string& query);
/// %XX becomes the byte; anything that is no escape stays.
std::string percent_decode(std::string_view text);
/// A client's request id as it may be sent back: letters, digits and -_.:, at most 128 of them.
/// Empty if it has anything else.
std::string clean_request_id(std::string_view id);

}  // namespace exl3::server
