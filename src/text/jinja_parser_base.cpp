#include "text/jinja_parser_base.h"

#include <fmt/format.h>

#include <algorithm>

namespace exl3::jinja {
namespace {

constexpr int kMaxNesting = 200;      // brackets and blocks inside one another
constexpr uint16_t kMaxDepth = 1500;  // of the tree: chains such as a + b + c + ... are deep, too

}  // namespace

std::string describe(const Token& token) {
    switch (token.kind) {
        case TokenKind::data: return "template data / text";
        case TokenKind::variable_begin: return "begin of print statement";
        case TokenKind::variable_end: return "end of print statement";
        case TokenKind::block_begin: return "begin of statement block";
        case TokenKind::block_end: return "end of statement block";
        case TokenKind::name:
        case TokenKind::op: return token.text;
        case TokenKind::string: return "string";
        case TokenKind::integer: return "integer";
        case TokenKind::real: return "float";
        case TokenKind::end: break;
    }
    return "end of template";
}

Nested::Nested(int& level, Position at) : level_(level) {
    if (level_ >= kMaxNesting)
        throw Failure{Fault::syntax, fmt::format("more than {} levels of nesting", kMaxNesting),
                      at};
    ++level_;
}

bool TokenReader::skip_name(std::string_view name) {
    if (!current().is_name(name)) return false;
    take();
    return true;
}

bool TokenReader::skip_op(std::string_view op) {
    if (!current().is_op(op)) return false;
    take();
    return true;
}

void TokenReader::fail_expected(std::string_view wanted) const {
    if (current().is(TokenKind::end))
        fail(fmt::format("unexpected end of template, expected '{}'.", wanted));
    fail(fmt::format("expected token '{}', got '{}'", wanted, describe(current())));
}

Token TokenReader::expect_name() {
    if (!current().is(TokenKind::name)) fail_expected("name");
    return take();
}

void TokenReader::expect_name(std::string_view name) {
    if (!skip_name(name)) fail_expected(name);
}

void TokenReader::expect_op(std::string_view op) {
    if (!skip_op(op)) fail_expected(op);
}

void TokenReader::expect(TokenKind kind) {
    if (!current().is(kind)) fail_expected(describe({kind, {}, {}}));
    take();
}

void TokenReader::set_depth(Node& node) const {
    uint16_t below = 0;
    node.each_child([&](Node& child) { below = std::max(below, child.depth); });
    if (below >= kMaxDepth)
        fail(fmt::format("an expression or block of more than {} levels", kMaxDepth), node.at);
    node.depth = static_cast<uint16_t>(below + 1);
}

}  // namespace exl3::jinja
