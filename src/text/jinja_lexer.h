#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_runtime.h"

namespace exl3::jinja {

enum class TokenKind : uint8_t {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    op,
    end
};

struct Token {
    TokenKind kind = TokenKind::end;
    Position at;
    std::string text;  ///< data, a name, the value of a string, the digits of a number, an operator
    bool is(TokenKind k) const { return kind == k; }
    bool is_op(std::string_view op) const { return kind == TokenKind::op && text == op; }
    bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

/// Line ends become '\n', and one at the very end is dropped: what Jinja does to every source.
std::string normalized_source(std::string_view source);

/// Cuts a normalized source into tokens. White space is already removed as trim_blocks,
/// lstrip_blocks and the signs in tags ask; comments are gone and raw blocks are data.
/// Throws Failure{syntax}.
std::vector<Token> tokenize(std::string_view source);

}  // namespace exl3::jinja
