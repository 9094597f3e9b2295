#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace exl3::jinja {

/// The token stream and what both halves of the parser need.
class TokenReader {
public:
    TokenReader(std::vector<Token> tokens, Tree& tree) : tree_(tree), tokens_(std::move(tokens)) {}

protected:
    const Token& current() const { return tokens_[at_]; }
    const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
    Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
    bool skip_name(std::string_view name);
    bool skip_op(std::string_view op);
    Token expect_name();
    void expect_name(std::string_view name);
    void expect_op(std::string_view op);
    void expect(TokenKind kind);
    [[noreturn]] void fail(std::string message) const { fail(std::move(message), current().at); }
    [[noreturn]] static void fail(std::string message, Position at) {
        throw Failure{Fault::syntax, std::move(message), at};
    }
    [[noreturn]] void fail_expected(std::string_view wanted) const;

    /// Sets the depth of a finished node and fails when it is too deep.
    template <typename T>
    NodePtr done(std::unique_ptr<T> node) const {
        set_depth(*node);
        return node;
    }
    void set_depth(Node& node) const;

    Tree& tree_;
    int nesting_ = 0;  ///< of the functions of the parser

private:
    std::vector<Token> tokens_;
    size_t at_ = 0;
};

/// What a token is called in messages.
std::string describe(const Token& token);

/// Bounds the recursion of the parser.
class Nested {
public:
    explicit Nested(int& level, Position at);
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --level_; }

private:
    int& level_;
};

/// Expressions; the statements are in jinja_parser.cpp.
class ExpressionParser : public TokenReader {
public:
    using TokenReader::TokenReader;

protected:
    /// What the grammar allows in some place: `a if b else c`, anything less, or what can be
    /// assigned to.
    enum class Level { full, no_condition, primary, set_target };
    NodePtr expression(Level level = Level::full);
    /// One expression, or several with commas between them; `end_name` ends the list as well.
    NodePtr tuple_or_expression(Level level = Level::full, bool in_parentheses = false,
                                std::string_view end_name = {});
    /// One name, or several with commas between them; at Level::set_target ns.name as well.
    NodePtr target(Level level = Level::primary, std::string_view end_name = {});
    NodePtr name_target();
    /// |a|b(c): applied to `input`, null for a block of text. `first` says that the bar before the
    /// first filter is left out.
    NodePtr filters(NodePtr input, bool first = false);
    std::unique_ptr<Name> make_name(const Token& token);
    void to_store(Node& target, Name::Use use) const;

private:
    NodePtr namespace_target();
    NodePtr condition();
    NodePtr disjunction();
    NodePtr conjunction();
    NodePtr inversion();
    NodePtr comparison();
    NodePtr sum();
    NodePtr concatenation();
    NodePtr product();
    NodePtr power();
    NodePtr unary(bool with_filters = true);
    NodePtr primary();
    NodePtr literal_string();
    NodePtr literal_integer();
    NodePtr literal_real();
    NodePtr list_display();
    NodePtr dict_display();
    NodePtr postfix(NodePtr node);
    NodePtr subscript(NodePtr node);
    NodePtr slice_or_index();
    NodePtr suffixes(NodePtr node);
    NodePtr call(NodePtr callee);
    Arguments arguments();
    NodePtr filter(NodePtr input);
    NodePtr test(NodePtr input);
    std::string dotted_name();
    bool ends_tuple(std::string_view end_name) const;
    NodePtr binary(Position at, BinaryOp op, NodePtr left, NodePtr right) const;
};

}  // namespace exl3::jinja
