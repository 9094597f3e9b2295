#pragma once
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace exl3 {

/// The messages of a chat, and the prompt they make with a model's template.
class Conversation {
public:
    /// The instructions before the first message; an empty text removes them.
    void set_system(std::string text);
    void add_user(std::string text) { add("user", std::move(text)); }
    /// @param reasoning  what the model thought before it answered; may be empty
    void add_assistant(std::string text, std::string reasoning);
    /// Removes the last message if it is of that role. True if it was.
    bool drop_last(std::string_view role);
    /// Removes every message but the system's.
    void reset();
    bool empty() const { return messages_.empty(); }
    size_t size() const { return messages_.size(); }

    /// The prompt for the next answer. Throws Error{invalid_argument} when the template refuses the
    /// messages.
    std::string prompt(const ChatTemplates& templates) const;

    const Json& messages() const { return messages_; }
    /// Replaces everything. Throws Error{invalid_file} naming `file` unless it is an array of
    /// objects with text as role and content.
    void load(Json messages, const std::string& file);

private:
    void add(const char* role, std::string text);
    Json messages_ = Json::array();
};

/// The ids of a rendered prompt. The template writes BOS and everything like it, so none is added.
std::vector<int32_t> encode_rendered(const Tokenizer& tokenizer, const std::string& prompt);

}  // namespace exl3
