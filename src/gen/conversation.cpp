#include "gen/conversation.h"

#include <fmt/format.h>

namespace exl3 {

void Conversation::add(const char* role, std::string text) {
    messages_.push_back({{"role", role}, {"content", std::move(text)}});
}

void Conversation::set_system(std::string text) {
    if (!messages_.empty() && messages_.front().at("role") == "system") messages_.erase(0);
    if (text.empty()) return;
    // Not as braces inside insert(), which would take them for a list of two elements.
    const Json message = {{"role", "system"}, {"content", std::move(text)}};
    messages_.insert(messages_.begin(), message);
}

void Conversation::add_assistant(std::string text, std::string reasoning) {
    add("assistant", std::move(text));
    if (!reasoning.empty()) messages_.back()["reasoning_content"] = std::move(reasoning);
}

bool Conversation::drop_last(std::string_view role) {
    if (messages_.empty() || messages_.back().at("role") != role) return false;
    messages_.erase(messages_.size() - 1);
    return true;
}

void Conversation::reset() {
    const bool has_system = !messages_.empty() && messages_.front().at("role") == "system";
    const Json system = has_system ? messages_.front() : Json();
    messages_ = Json::array();
    if (has_system) messages_.push_back(system);
}

std::string Conversation::prompt(const ChatTemplates& templates) const {
    return templates.apply({{"messages", messages_}, {"add_generation_prompt", true}}).value();
}

void Conversation::load(Json messages, const std::string& file) {
    const auto refuse = [&](const std::string& what) {
        throw Error(Errc::invalid_file, {file, {}, {}}, what);
    };
    if (!messages.is_array())
        refuse(fmt::format("found {}, needed an array of messages", messages.type_name()));
    size_t i = 0;
    for (const Json& m : messages) {
        for (const char* key : {"role", "content"})
            if (!m.is_object() || !m.contains(key) || !m.at(key).is_string())
                refuse(fmt::format("message {}: needed text under '{}'", i, key));
        ++i;
    }
    messages_ = std::move(messages);
}

std::vector<int32_t> encode_rendered(const Tokenizer& tokenizer, const std::string& prompt) {
    return tokenizer.encode(prompt, {.add_special = false});
}

}  // namespace exl3
