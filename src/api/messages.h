#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "api/request.h"

namespace exl3::api {

/// What a chat template can do, found by rendering it; decides how messages are handed to it.
struct MessageTraits {
    bool part_lists = false;      ///< content may be a list of parts; otherwise they are joined
    bool developer_role = false;  ///< knows "developer"; otherwise it becomes "system"
    bool system_anywhere = true;  ///< system messages may stand between others
    bool tools = true;            ///< shows tools and calls to the model
    bool calls = true;            ///< shows calls of earlier answers; otherwise they become text
    bool text_arguments = false;  ///< arguments must be JSON text, not an object
    bool short_call_ids = false;  ///< demands call ids of 9 letters and digits (Mistral)
};

/// The messages of a chat request, checked and in the one form that the rest knows: role; content
/// (text, a list of text parts, or null beside tool calls); tool_calls with arguments as objects;
/// tool_call_id; name; reasoning under all three names that templates read. Null members are gone,
/// function calls of the old kind are tool calls, and tool results follow the order of their calls.
/// Throws ApiError naming the message and field; images, sound and files are refused.
/// @param path  "messages", for errors
Json read_chat_messages(const Json& messages, const std::string& path);

/// Tools of a chat request ({type, function}), or of Responses ({type, name, ...}). Types that only
/// a hosted service offers are left out.
std::vector<ToolSpec> read_tools(const Json& tools, const std::string& path);
/// The tools as chat templates expect them.
Json template_tools(const std::vector<ToolSpec>& tools);
/// tool_choice in any of its forms, parallel_tool_calls. Narrows `tools` to the allowed ones.
ToolChoice read_tool_choice(const Json& request, std::vector<ToolSpec>& tools);

/// Adds what the request says about reasoning as template variables: reasoning_effort,
/// enable_thinking, thinking, verbosity; then chat_template_kwargs and the server's own.
void add_template_vars(const Json& request, const RequestDefaults& defaults, Json& chat);

/// Rewrites checked messages for one template.
/// `tools` are described in the system message when the template has no place for them.
void adapt_messages(Json& chat, const MessageTraits& traits, const std::vector<ToolSpec>& tools);

/// Text of a message's content: the text itself, or the parts joined by line ends.
std::string content_text(const Json& content);

}  // namespace exl3::api
