#include "text/precompiled.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <array>

#include "text/unicode.h"

namespace exl3::text {
namespace {

[[noreturn]] void damaged(std::string_view what) {
    throw Error(Errc::invalid_file, {}, fmt::format("damaged character map: {}", what));
}

// Units of the double array (Darts-clone): label and "has a leaf" of a node, and where its children
// are. A leaf's unit holds its value.
bool has_leaf(uint32_t unit) {
    return (unit >> 8 & 1) != 0;
}
uint32_t value_of(uint32_t unit) {
    return unit & 0x7FFFFFFF;
}
uint32_t label_of(uint32_t unit) {
    return unit & 0x800000FF;
}
uint32_t offset_of(uint32_t unit) {
    return unit >> 10 << ((unit & 0x200) >> 6);
}

std::optional<std::string> decode_base64(std::string_view text) {
    std::array<int, 256> digit;
    digit.fill(-1);
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < kDigits.size(); ++i)
        digit[static_cast<uint8_t>(kDigits[i])] = static_cast<int>(i);
    std::string out;
    uint32_t bits = 0;
    int count = 0;
    while (text.ends_with('=')) text.remove_suffix(1);
    for (const char c : text) {
        const int d = digit[static_cast<uint8_t>(c)];
        if (d < 0) return std::nullopt;
        bits = bits << 6 | static_cast<uint32_t>(d);
        if ((count += 6) >= 8) {
            count -= 8;
            out += static_cast<char>(bits >> count & 0xFF);
        }
    }
    return out;
}

size_t grapheme_end(std::string_view text, size_t begin) {
    utf8proc_int32_t state = 0;
    size_t at = begin;
    auto before = static_cast<utf8proc_int32_t>(next_code_point(text, at));
    while (at < text.size()) {
        size_t next = at;
        const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, next));
        if (utf8proc_grapheme_break_stateful(before, c, &state)) break;
        before = c;
        at = next;
    }
    return at;
}

struct Precompiled final : Normalizer {
    explicit Precompiled(CharMap m) : map(std::move(m)) {}
    CharMap map;
    void apply(std::string& text) const override {
        constexpr size_t kWholeGrapheme = 6;
        std::string out;
        out.reserve(text.size());
        const std::string_view s = text;
        for (size_t begin = 0; begin < s.size();) {
            const size_t end = grapheme_end(s, begin);
            const std::string_view grapheme = s.substr(begin, end - begin);
            const auto hit =
                grapheme.size() < kWholeGrapheme ? map.shortest(grapheme) : std::nullopt;
            if (hit)
                out += hit->replacement;
            else
                by_code_point(grapheme, out);
            begin = end;
        }
        text = std::move(out);
    }
    void by_code_point(std::string_view grapheme, std::string& out) const {
        for (size_t i = 0; i < grapheme.size();) {
            const std::string_view one = grapheme.substr(i, utf8_length(grapheme[i]));
            const auto hit = map.shortest(one);
            out += hit ? hit->replacement : one;
            i += one.size();
        }
    }
};

}  // namespace

CharMap::CharMap(std::string_view bytes) {
    const auto u32 = [&](size_t at) {
        uint32_t v = 0;
        for (size_t i = 0; i < 4; ++i) v |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << 8 * i;
        return v;
    };
    if (bytes.size() < 4) damaged("needs 4 bytes for the size of its trie");
    const size_t trie = u32(0);
    if (trie % 4 != 0 || trie > bytes.size() - 4)
        damaged(fmt::format("a trie of {} bytes in {}", trie, bytes.size()));
    for (size_t at = 4; at < 4 + trie; at += 4) units_.push_back(u32(at));
    pool_ = bytes.substr(4 + trie);
    if (!is_valid_utf8(pool_)) damaged("its replacements are not UTF-8");
}

std::optional<CharMap::Hit> CharMap::find(std::string_view text, bool longest) const {
    std::optional<Hit> best;
    if (units_.empty()) return best;
    uint32_t node = offset_of(units_[0]);
    for (size_t i = 0; i < text.size() && text[i] != 0; ++i) {
        const auto byte = static_cast<uint8_t>(text[i]);
        node ^= byte;
        if (node >= units_.size() || label_of(units_[node]) != byte) break;
        const uint32_t unit = units_[node];
        node ^= offset_of(unit);
        if (node >= units_.size()) break;
        if (!has_leaf(unit)) continue;
        const uint32_t at = value_of(units_[node]);
        if (at >= pool_.size() || (static_cast<uint8_t>(pool_[at]) & 0xC0) == 0x80) continue;
        const size_t end = std::min(pool_.find('\0', at), pool_.size());
        best = {i + 1, std::string_view(pool_).substr(at, end - at)};
        if (!longest) break;
    }
    return best;
}

std::unique_ptr<Normalizer> load_precompiled(const JsonNode& node) {
    const JsonNode map = node.at("precompiled_charsmap");
    const auto bytes = decode_base64(map.text());
    if (!bytes) map.fail("is not base64");
    try {
        return std::make_unique<Precompiled>(CharMap(*bytes));
    } catch (const Error& e) {
        map.fail(e.what(), e.code());
    }
}

}  // namespace exl3::text
