#include "api/scan.h"

namespace exl3::api {
namespace {

bool is_space(int c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

TagSet::TagSet(std::vector<std::string> tags) : tags_(std::move(tags)) {
    std::erase(tags_, std::string());
    for (const std::string& t : tags_) first_[static_cast<unsigned char>(t[0])] = true;
}

Parse<int> match_tag(TextFeed& in, const TagSet& tags) {
    const size_t start = in.position();
    int best = -1;
    size_t best_end = start;
    std::string held;
    for (bool open = true; open;) {
        const int c = co_await in.peek();
        if (c == TextFeed::kEnd) break;
        held += static_cast<char>(c);
        in.skip();
        open = false;
        for (size_t i = 0; i < tags.size(); ++i) {
            if (!tags[i].starts_with(held)) continue;
            if (tags[i].size() == held.size()) {
                if (best >= 0 && best_end == in.position()) continue;  // twice in the set
                best = static_cast<int>(i);
                best_end = in.position();
            } else {
                open = true;
            }
        }
    }
    in.rewind(best_end);
    co_return best;
}

Parse<int> copy_until(TextFeed& in, const TagSet& tags, const TextSink& out) {
    for (;;) {
        const int c = co_await in.peek();
        if (c == TextFeed::kEnd) co_return -1;
        if (tags.may_begin(c)) {
            const int tag = co_await match_tag(in, tags);
            if (tag >= 0) co_return tag;
        }
        const char byte = static_cast<char>(c);
        in.skip();
        out(std::string_view(&byte, 1));
    }
}

Parse<int> skip_space(TextFeed& in) {
    for (;;) {
        const int c = co_await in.peek();
        if (!is_space(c)) co_return c;
        in.skip();
    }
}

Parse<void> expect(TextFeed& in, std::string_view text) {
    for (const char wanted : text) {
        const int c = co_await in.peek();
        if (c != static_cast<unsigned char>(wanted)) throw Unparsable{};
        in.skip();
    }
}

}  // namespace exl3::api
