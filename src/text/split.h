#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "text/json_reader.h"
#include "text/pretokenize.h"

namespace exl3::text {

/// What becomes of the matches of a splitting pattern; named in tokenizer.json.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

SplitBehavior load_behavior(const JsonNode& node, SplitBehavior otherwise);

/// Collects the matches of one piece from left to right and makes pieces of them.
class Splitter {
public:
    Splitter(size_t begin, SplitBehavior behavior, bool invert, std::vector<Pieces::Range>& out)
        : at_(begin), behavior_(behavior), invert_(invert), out_(out) {}
    /// A match, in bytes of the whole text; none before the end of the last.
    void match(size_t begin, size_t end) {
        if (begin > at_) run(at_, begin, invert_);
        run(begin, end, !invert_);
        at_ = end;
    }
    /// The piece ends here.
    void finish(size_t end) {
        if (end > at_) run(at_, end, invert_);
        if (held_.begin < held_.end) out_.push_back(held_);
    }

private:
    void run(size_t begin, size_t end, bool is_match);
    size_t at_;
    SplitBehavior behavior_;
    bool invert_;
    std::vector<Pieces::Range>& out_;
    bool previous_ = false;     // whether the run before was a match
    Pieces::Range held_{0, 0};  // the piece that the next run may still extend
};

}  // namespace exl3::text
