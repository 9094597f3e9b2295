// JSON as models write it, made strict on its way through.
#include <fmt/format.h>

#include <charconv>

#include "api/fields.h"
#include "api/scan.h"

namespace exl3::api {
namespace {

constexpr int kEnd = TextFeed::kEnd;

bool is_word(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '+' || c == '.' || c == '$';
}

// The literal that a bare word stands for; empty if it is none.
std::string literal_of(const std::string& word) {
    if (word == "true" || word == "True") return "true";
    if (word == "false" || word == "False") return "false";
    if (word == "null" || word == "None" || word == "undefined" || word == "nil") return "null";
    const auto number = parse_json(word, "number");
    return number ? word : std::string();
}

Parse<int> read_hex(TextFeed& in, int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i) {
        const int c = co_await in.peek();
        int digit = -1;
        if (c >= '0' && c <= '9') digit = c - '0';
        if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
        if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
        if (digit < 0) co_return -1;
        value = value * 16 + digit;
        in.skip();
    }
    co_return value;
}

// \uXXXX, with the second half of a surrogate pair. Lone halves become U+FFFD.
Parse<std::string> relay_unicode(TextFeed& in) {
    const int high = co_await read_hex(in, 4);
    if (high < 0) co_return "\\ufffd";
    if (high < 0xd800 || high > 0xdfff) co_return fmt::format("\\u{:04x}", high);
    const size_t after = in.position();
    if (high < 0xdc00 && co_await in.peek() == '\\') {
        in.skip();
        if (co_await in.peek() == 'u') {
            in.skip();
            const int low = co_await read_hex(in, 4);
            if (low >= 0xdc00 && low <= 0xdfff)
                co_return fmt::format("\\u{:04x}\\u{:04x}", high, low);
        }
        in.rewind(after);
    }
    co_return "\\ufffd";
}

// What stands after a backslash, as a JSON escape.
Parse<std::string> relay_escape(TextFeed& in) {
    const int c = co_await in.peek();
    if (c == kEnd) co_return std::string();
    in.skip();
    switch (c) {
        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't': co_return std::string{'\\', static_cast<char>(c)};
        case '\'': co_return "'";
        case '\n': co_return std::string();  // Python: the line goes on
        case 'u': {
            std::string unit = co_await relay_unicode(in);
            co_return unit;
        }
        case 'x': {
            const int value = co_await read_hex(in, 2);
            if (value < 0) co_return "\\\\x";
            co_return fmt::format("\\u{:04x}", value);
        }
        default: {
            const char byte = static_cast<char>(c);
            std::string kept = "\\\\";  // no escape in either language: the backslash is meant
            if (c < 0x20)
                kept += fmt::format("\\u{:04x}", c);
            else
                kept += byte;
            co_return kept;
        }
    }
}

// A quoted string, after its opening quote. True if it was closed.
Parse<bool> relay_string(TextFeed& in, int delimiter, const TextSink& out) {
    out("\"");
    for (;;) {
        const int c = co_await in.peek();
        if (c == kEnd) {
            out("\"");
            co_return false;
        }
        in.skip();
        if (c == delimiter) break;
        if (c == '\\') {
            const std::string escape = co_await relay_escape(in);
            out(escape);
        } else if (c == '"') {
            out("\\\"");
        } else if (c == '\n') {
            out("\\n");
        } else if (c == '\t') {
            out("\\t");
        } else if (c < 0x20) {
            out(fmt::format("\\u{:04x}", c));
        } else {
            const char byte = static_cast<char>(c);
            out(std::string_view(&byte, 1));
        }
    }
    out("\"");
    co_return true;
}

Parse<std::string> read_word(TextFeed& in) {
    std::string word;
    for (int c = co_await in.peek(); is_word(c); c = co_await in.peek()) {
        word += static_cast<char>(c);
        in.skip();
    }
    co_return word;
}

Parse<bool> relay_key(TextFeed& in, const TextSink& out) {
    const int c = co_await in.peek();
    if (c == '"' || c == '\'') {
        in.skip();
        const bool closed = co_await relay_string(in, c, out);
        co_return closed;
    }
    const std::string word = co_await read_word(in);
    if (!word.empty()) out(quote(word));
    co_return !word.empty();
}

Parse<bool> relay_members(TextFeed& in, const TextSink& out, int depth);
Parse<bool> relay_items(TextFeed& in, const TextSink& out, int depth);

}  // namespace

Parse<bool> relay_json(TextFeed& in, const TextSink& out, int depth) {
    const int c = co_await skip_space(in);
    if (c == '"' || c == '\'') {
        in.skip();
        const bool closed = co_await relay_string(in, c, out);
        co_return closed;
    }
    if ((c == '{' || c == '[') && depth > 0) {
        in.skip();
        bool closed = false;
        if (c == '{')
            closed = co_await relay_members(in, out, depth - 1);
        else
            closed = co_await relay_items(in, out, depth - 1);
        co_return closed;
    }
    const std::string word = co_await read_word(in);
    const std::string literal = literal_of(word);
    out(literal.empty() ? "null" : literal);
    co_return !literal.empty();
}

namespace {

Parse<bool> relay_members(TextFeed& in, const TextSink& out, int depth) {
    out("{");
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (c == ',' && !first) {
            in.skip();
            c = co_await skip_space(in);
        } else if (!first && c != '}') {
            break;
        }
        if (c == '}') {
            in.skip();
            out("}");
            co_return true;
        }
        if (c != '"' && c != '\'' && !is_word(c)) break;
        if (!first) out(", ");
        const bool key = co_await relay_key(in, out);
        out(": ");
        const int colon = co_await skip_space(in);
        if (!key || (colon != ':' && colon != '=')) {
            out("null");
            break;
        }
        in.skip();
        const bool whole = co_await relay_json(in, out, depth);
        if (!whole) break;
    }
    out("}");
    co_return false;
}

Parse<bool> relay_items(TextFeed& in, const TextSink& out, int depth) {
    out("[");
    for (bool first = true;; first = false) {
        int c = co_await skip_space(in);
        if (c == ',' && !first) {
            in.skip();
            c = co_await skip_space(in);
        } else if (!first && c != ']') {
            break;
        }
        if (c == ']') {
            in.skip();
            out("]");
            co_return true;
        }
        if (c == kEnd) break;
        if (!first) out(", ");
        const bool whole = co_await relay_json(in, out, depth);
        if (!whole) break;
    }
    out("]");
    co_return false;
}

}  // namespace

Parse<std::string> read_string(TextFeed& in) {
    const int c = co_await in.peek();
    if (c != '"' && c != '\'') throw Unparsable{};
    in.skip();
    std::string literal;
    const TextSink keep = [&](std::string_view s) { literal += s; };
    const bool closed = co_await relay_string(in, c, keep);
    if (!closed) throw Unparsable{};
    auto value = parse_json(literal, "string");
    if (!value) throw Unparsable{};
    co_return value->get<std::string>();
}

std::string quote(std::string_view text) {
    return to_text(Json(std::string(text)));
}

}  // namespace exl3::api
