#include "text/pattern.h"

namespace exl3::text {

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
        out.append(text.substr(copied, m.begin - copied)).append(content);
        copied = m.end;
    });
    return out.append(text.substr(copied));
}

}  // namespace exl3::text
