#pragma once
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/text_feed.h"

namespace exl3::api {

/// The text cannot be a tool call; thrown by parsers, caught where they were tried.
struct Unparsable {};

using TextSink = std::function<void(std::string_view)>;

/// Texts to look for at once.
class TagSet {
public:
    TagSet() = default;
    explicit TagSet(std::vector<std::string> tags);
    bool may_begin(int byte) const { return byte >= 0 && first_[static_cast<size_t>(byte)]; }
    size_t size() const { return tags_.size(); }
    const std::string& operator[](size_t i) const { return tags_[i]; }

private:
    std::vector<std::string> tags_;
    std::array<bool, 256> first_{};
};

/// Hands text to `out` up to the first tag, which is consumed; the longest of those that begin at
/// one place counts. Text that may still become a tag waits. The index of the tag, -1 at the end.
Parse<int> copy_until(TextFeed& in, const TagSet& tags, const TextSink& out);
/// The tag that stands next, consumed; -1, with nothing consumed, if it is none of them.
Parse<int> match_tag(TextFeed& in, const TagSet& tags);
/// Consumes white space and returns the byte after it, or TextFeed::kEnd.
Parse<int> skip_space(TextFeed& in);
/// Consumes exactly this text; throws Unparsable if something else stands there.
Parse<void> expect(TextFeed& in, std::string_view text);

/// Reads one JSON value as models write it and hands strict JSON to `out`, as it comes. Understood
/// besides JSON: single quotes, raw control characters in strings, True/False/None, trailing
/// commas, bare keys. Where the value breaks or the text ends, what is open is closed, so that
/// `out` has always got a whole value. True if it was complete.
/// @param depth  levels that may be open; deeper ones are broken off
Parse<bool> relay_json(TextFeed& in, const TextSink& out, int depth = 100);
/// The text of a string literal at the current place, decoded. Throws Unparsable if none is there.
Parse<std::string> read_string(TextFeed& in);

/// `text` as a JSON string literal, quotes included; what is not UTF-8 becomes U+FFFD.
std::string quote(std::string_view text);

}  // namespace exl3::api
