#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace exl3 {

/// What ends a job before its token limit.
struct StopConditions {
    std::vector<int32_t> tokens;       ///< ids; the token itself yields no text
    std::vector<std::string> strings;  ///< UTF-8, compared exactly; empty ones are ignored
    bool keep_string = false;          ///< the stop string stays in the output
};

/// Looks for stop strings in text that arrives in pieces. Text that may still become part of one is
/// withheld, everything else is released at once and for good.
///
/// The output ends where the earliest match in the whole text begins, however the text is cut into
/// pieces. If a match is complete while an earlier one is still possible ("bc" inside "abcd"), the
/// decision waits for more text. Of several strings that match at the same place the longest one
/// that is complete by then is reported.
///
/// One pass over the text, at a cost per byte that hardly depends on the number of strings (Aho
/// and Corasick, Efficient string matching, CACM 18, 1975). Copies are independent.
class StopMatcher {
public:
    explicit StopMatcher(StopConditions conditions);

    bool is_stop_token(int32_t token) const;

    /// Takes the next piece of output (valid UTF-8 as a whole) and returns the text that is now
    /// final. Must not be called once stopped().
    std::string push(std::string_view piece);
    /// The same for a caller that keeps the text itself: returns how many bytes more are final.
    size_t advance(std::string_view piece);
    /// No more text will come (stop token, token limit, cancel): decides what was left open and
    /// returns the rest of the output. May still find a stop string; then stopped() holds.
    std::string finish();
    size_t finish_count();  ///< as advance() is to push()

    bool stopped() const { return stopped_; }
    /// The stop string that ended the output; empty unless stopped().
    const std::string& matched() const { return matched_; }
    /// Text taken but not released. Once stopped() that is what never will be: the match, unless it
    /// is kept, and what came after it.
    const std::string& held() const { return held_; }

private:
    /// A prefix of some stop string.
    struct Node {
        std::vector<std::pair<char, int>> next;  ///< the prefixes one byte longer
        size_t depth = 0;                        ///< bytes
        int shorter = 0;   ///< the longest proper suffix that is a prefix of some string, too
        size_t match = 0;  ///< bytes of the longest stop string that ends here; 0 if none
    };

    void build();
    int child(int node, char byte) const;
    int step(int node, char byte) const;
    size_t scan(std::string_view piece);
    size_t settle();
    size_t stop_at(size_t start);
    std::string release(size_t bytes);

    StopConditions conditions_;
    std::vector<Node> nodes_;
    int node_ = 0;       ///< longest end of the text that is a prefix of a stop string
    size_t open_match_;  ///< where in held_ the earliest complete match begins; kNone if none
    bool stopped_ = false;
    std::string held_;
    std::string matched_;
};

}  // namespace exl3
