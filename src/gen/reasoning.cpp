#include "gen/reasoning.h"

#include <algorithm>
#include <array>

namespace exl3 {
namespace {

constexpr std::array<std::array<std::string_view, 2>, 5> kPairs = {{
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<seed:think>", "</seed:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"◁think▷", "◁/think▷"},
}};

// Bytes at the end of `text` that begin `tag` without being all of it.
size_t partial_match(std::string_view text, std::string_view tag) {
    for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
        if (text.substr(text.size() - n) == tag.substr(0, n)) return n;
    return 0;
}

}  // namespace

std::optional<ReasoningTags> reasoning_tags(const Tokenizer& tokenizer) {
    const auto shown = [&](std::string_view token) {
        const auto id = tokenizer.id_of(token);
        return id && !tokenizer.is_special(*id);
    };
    for (const auto& [open, close] : kPairs)
        if (shown(open) && shown(close))
            return ReasoningTags{std::string(open), std::string(close)};
    return std::nullopt;
}

ReasoningSplitter::ReasoningSplitter(std::optional<ReasoningTags> tags, std::string_view prompt)
    : tags_(std::move(tags)) {
    if (!tags_) return;
    const size_t last = prompt.find_last_not_of(" \t\r\n");
    reasoning_ =
        last != std::string_view::npos && prompt.substr(0, last + 1).ends_with(tags_->open);
}

void ReasoningSplitter::emit(std::vector<Part>& parts, std::string text) const {
    if (!text.empty()) parts.push_back({reasoning_, std::move(text)});
}

std::vector<ReasoningSplitter::Part> ReasoningSplitter::push(std::string_view text) {
    std::vector<Part> parts;
    held_ += text;
    while (tags_) {
        const std::string& tag = reasoning_ ? tags_->close : tags_->open;
        const size_t at = held_.find(tag);
        if (at == std::string::npos) break;
        emit(parts, held_.substr(0, at));
        held_.erase(0, at + tag.size());
        reasoning_ = !reasoning_;
    }
    const size_t keep = tags_ ? partial_match(held_, reasoning_ ? tags_->close : tags_->open) : 0;
    emit(parts, held_.substr(0, held_.size() - keep));
    held_.erase(0, held_.size() - keep);
    return parts;
}

std::vector<ReasoningSplitter::Part> ReasoningSplitter::finish() {
    std::vector<Part> parts;
    emit(parts, std::exchange(held_, {}));
    return parts;
}

}  // namespace exl3
