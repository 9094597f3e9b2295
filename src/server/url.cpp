#include "server/url.h"

#include <algorithm>

namespace exl3::server {
namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
}

}  // namespace

std::string percent_decode(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
        const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
        if (low >= 0) {
            out += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

void split_target(std::string_view target, std::string& path, std::string& query) {
    const size_t mark = target.find('?');
    query = mark == std::string_view::npos ? "" : std::string(target.substr(mark + 1));
    path = percent_decode(target.substr(0, mark));
    while (path.size() > 1 && path.back() == '/') path.pop_back();
}

std::string clean_request_id(std::string_view id) {
    constexpr size_t kLongest = 128;
    if (id.size() > kLongest || !std::all_of(id.begin(), id.end(), plain)) return {};
    return std::string(id);
}

}  // namespace exl3::server
