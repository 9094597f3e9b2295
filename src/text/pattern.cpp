#include "text/pattern.h"

#include <fmt/format.h>

namespace exl3::text {
namespace {

// A file may chain replacements of which each doubles the text; past this size they are an attack.
constexpr size_t kMostGrown = size_t{256} << 20;

}  // namespace

Regex load_regex(const JsonNode& node) {
    try {
        return Regex(node.text());
    } catch (const Error& e) {
        node.fail(e.what(), e.code());
    }
}

Pattern Pattern::load(const JsonNode& node) {
    if (node.value().is_string()) return Pattern(node.text());  // files of the first versions
    if (node.has("Regex")) return Pattern(load_regex(node.at("Regex")));
    return Pattern(node.text("String"));
}

std::string Pattern::replace(std::string_view text, std::string_view content) const {
    std::string out;
    size_t copied = 0;
    for_each(text, [&](Regex::Match m) {
        if (out.size() > kMostGrown && out.size() > m.begin)
            throw Error(Errc::invalid_argument, {},
                        fmt::format("replacements make {} bytes out of {}", out.size(), m.begin));
        out.append(text.substr(copied, m.begin - copied)).append(content);
        copied = m.end;
    });
    return out.append(text.substr(copied));
}

}  // namespace exl3::text
