#include "text/split.h"

#include <fmt/format.h>

namespace exl3::text {

SplitBehavior load_behavior(const JsonNode& node, SplitBehavior otherwise) {
    if (!node.has("behavior")) return otherwise;
    const std::string& name = node.text("behavior");
    if (name == "Removed") return SplitBehavior::removed;
    if (name == "Isolated") return SplitBehavior::isolated;
    if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
    if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
    if (name == "Contiguous") return SplitBehavior::contiguous;
    node.at("behavior").fail(fmt::format("is the unknown behavior '{}'", name), Errc::unsupported);
}

void Splitter::run(size_t begin, size_t end, bool is_match) {
    const bool was_match = std::exchange(previous_, is_match);
    bool joins = false;
    switch (behavior_) {
        case SplitBehavior::isolated:
            if (begin < end) out_.push_back({begin, end});
            return;
        case SplitBehavior::removed:
            if (!is_match && begin < end) out_.push_back({begin, end});
            return;
        // Of several matches in a row only the first goes with the gap before it.
        case SplitBehavior::merged_with_previous: joins = is_match && !was_match; break;
        // Seen from the right: a gap takes the match just before it; of several, the last.
        case SplitBehavior::merged_with_next: joins = was_match && !is_match; break;
        case SplitBehavior::contiguous: joins = is_match == was_match; break;
    }
    if (joins && held_.begin < held_.end) {
        held_.end = end;
        return;
    }
    if (held_.begin < held_.end) out_.push_back(held_);
    held_ = {begin, end};
}

}  // namespace exl3::text
