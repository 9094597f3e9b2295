#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace exl3 {

/// The tags between which a model thinks before it answers.
struct ReasoningTags {
    std::string open, close;
};
/// The pair of known tags that the vocabulary has as tokens of their own and that decoding shows
/// ("<think>", "</think>"); nothing if there is none.
std::optional<ReasoningTags> reasoning_tags(const Tokenizer& tokenizer);

/// Tells reasoning from answer in a text that arrives in pieces. The tags themselves are left out;
/// what may still become one is held back.
class ReasoningSplitter {
public:
    struct Part {
        bool reasoning = false;
        std::string text;
    };
    /// @param tags    none: everything is answer
    /// @param prompt  what the model went on from; reasoning has begun if it ends in an open tag
    ReasoningSplitter(std::optional<ReasoningTags> tags, std::string_view prompt);
    std::vector<Part> push(std::string_view text);
    std::vector<Part> finish();  ///< what was held back
    bool reasoning() const { return reasoning_; }

private:
    void emit(std::vector<Part>& parts, std::string text) const;
    std::optional<ReasoningTags> tags_;
    std::string held_;
    bool reasoning_ = false;
};

}  // namespace exl3
