#include "gen/stop.h"

#include <algorithm>

#include "base/error.h"

namespace exl3 {
namespace {

constexpr size_t kNone = std::string::npos;

}  // namespace

StopMatcher::StopMatcher(StopConditions conditions)
    : conditions_(std::move(conditions)), open_match_(kNone) {
    std::sort(conditions_.tokens.begin(), conditions_.tokens.end());
    build();
}

bool StopMatcher::is_stop_token(int32_t token) const {
    return std::binary_search(conditions_.tokens.begin(), conditions_.tokens.end(), token);
}

void StopMatcher::build() {
    nodes_.emplace_back();
    for (const std::string& text : conditions_.strings) {
        int node = 0;
        for (const char byte : text) {
            int next = child(node, byte);
            if (next == 0) {
                next = static_cast<int>(nodes_.size());
                nodes_[static_cast<size_t>(node)].next.emplace_back(byte, next);
                nodes_.push_back({.depth = nodes_[static_cast<size_t>(node)].depth + 1});
            }
            node = next;
        }
        nodes_[static_cast<size_t>(node)].match = text.size();
    }
    // Breadth first, so that the shorter prefixes a node refers to are complete before it.
    std::vector<int> queue = {0};
    for (size_t i = 0; i < queue.size(); ++i) {
        const int node = queue[i];
        for (const auto& [byte, next] : nodes_[static_cast<size_t>(node)].next) {
            Node& n = nodes_[static_cast<size_t>(next)];
            n.shorter = node == 0 ? 0 : step(nodes_[static_cast<size_t>(node)].shorter, byte);
            if (n.match == 0) n.match = nodes_[static_cast<size_t>(n.shorter)].match;
            queue.push_back(next);
        }
    }
}

// The prefix one byte longer, or 0 (no other prefix leads to the empty one).
int StopMatcher::child(int node, char byte) const {
    for (const auto& [b, next] : nodes_[static_cast<size_t>(node)].next)
        if (b == byte) return next;
    return 0;
}

int StopMatcher::step(int node, char byte) const {
    for (;; node = nodes_[static_cast<size_t>(node)].shorter) {
        const int next = child(node, byte);
        if (next != 0 || node == 0) return next;
    }
}

// Forgets the first bytes of the held text, which are final.
std::string StopMatcher::release(size_t bytes) {
    std::string out = held_.substr(0, bytes);
    held_.erase(0, bytes);
    return out;
}

std::string StopMatcher::push(std::string_view piece) {
    return release(scan(piece));
}

size_t StopMatcher::advance(std::string_view piece) {
    const size_t final = scan(piece);
    held_.erase(0, final);
    return final;
}

std::string StopMatcher::finish() {
    return release(settle());
}

size_t StopMatcher::finish_count() {
    const size_t final = settle();
    held_.erase(0, final);
    return final;
}

// Takes a piece and returns how much of the held text is final.
size_t StopMatcher::scan(std::string_view piece) {
    EXL3_CHECK(!stopped_, "text after a stop string");
    size_t end = held_.size();
    held_ += piece;
    while (end < held_.size()) {
        node_ = step(node_, held_[end++]);
        const Node& n = nodes_[static_cast<size_t>(node_)];
        // All places where something begins lie in held_: what was released cannot match any more.
        if (n.match != 0) open_match_ = std::min(open_match_, end - n.match);
        // Nothing that began before the match can still be completed.
        if (open_match_ != kNone && end - n.depth >= open_match_) return stop_at(open_match_);
    }
    const size_t safe = std::min(open_match_, end - nodes_[static_cast<size_t>(node_)].depth);
    if (open_match_ != kNone) open_match_ -= safe;
    return safe;
}

// Decides what is left open, and returns how much of the held text is final.
size_t StopMatcher::settle() {
    if (stopped_) return 0;
    if (open_match_ != kNone) return stop_at(open_match_);
    return held_.size();
}

size_t StopMatcher::stop_at(size_t start) {
    stopped_ = true;
    for (const std::string& text : conditions_.strings)
        if (text.size() > matched_.size() && held_.compare(start, text.size(), text) == 0)
            matched_ = text;
    return conditions_.keep_string ? start + matched_.size() : start;
}

}  // namespace exl3
