#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "grammar/gbnf.h"
#include "grammar/grammar_constraint.h"
#include "grammar/regex.h"
#include "support/constrained.h"

namespace exl3::test {
namespace {

using Make = std::function<std::shared_ptr<Constraint>(std::shared_ptr<const TokenTrie>)>;

// Whether a constraint lets a whole text through.
bool matches(const std::shared_ptr<Constraint>& c, std::string_view text) {
    ConstraintState state(c);
    return state.accept_text(text) && state.may_end();
}

void expect_error(const std::function<void()>& make, const std::string& part) {
    try {
        make();
        FAIL() << "no error, needed one with '" << part << "'";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::invalid_argument);
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
}

// The definition of a mask: a token is allowed exactly if its bytes can be taken.
void expect_masks_by_definition(const std::shared_ptr<Constraint>& c, uint64_t seed) {
    const auto trie = small_vocabulary();
    Random random(seed);
    ConstraintState state(c);
    TokenMask mask;
    for (int step = 0; step < 60; ++step) {
        state.mask(mask);
        for (int32_t id = 0; id < trie->tokens(); ++id) {
            const bool takes = state.accept(id);
            if (takes) state.undo(1);
            ASSERT_EQ(mask.allows(id), takes)
                << "step " << step << ", token '" << trie->bytes_of(id) << "'";
        }
        const auto ids = allowed(mask, trie->tokens());
        ASSERT_FALSE(ids.empty());
        const int32_t id = ids[random.below(ids.size())];
        ASSERT_TRUE(state.accept(id));
        if (trie->ends_text(id)) return;
    }
}

std::shared_ptr<Constraint> regex(const std::string& pattern) {
    return Constraint::regex(pattern, small_vocabulary());
}
std::shared_ptr<Constraint> gbnf(const std::string& grammar) {
    return Constraint::gbnf(grammar, small_vocabulary());
}

}  // namespace

TEST(Grammar, RegexTakesWhatTheLibraryTakes) {
    const std::vector<std::string> patterns = {
        "abc",         "a*b+c?",          "(ab|cd)*e",  "[a-c]{2,4}",
        "[^a-c]x",     "\\d{3}-\\d+",     "a{0,2}b{3}", "(a|b|ab)(c|bcd)",
        "(?:x|y)+z",   "\\w+@\\w+\\.com", "",           "a|",
        "[\\]\\\\-]+", "(a(b(c)?)?)?d",   "x.y",        "[0-9a-fA-F]{8}",
        "\\s*\\S+",    "((a|b){2}){2,3}", "a{150,200}", "(ab?){60,}"};
    const std::vector<std::string> texts = {"",
                                            "a",
                                            "b",
                                            "ab",
                                            "abc",
                                            "abab",
                                            "cde",
                                            "ababcde",
                                            "aac",
                                            "abbc",
                                            "123-4567",
                                            "bbb",
                                            "aabbb",
                                            "xz",
                                            "xyxz",
                                            "ac",
                                            "abcd",
                                            "abbcd",
                                            "d",
                                            "ad",
                                            "abd",
                                            "x\ny",
                                            "x-y",
                                            "me@you.com",
                                            "]-\\",
                                            "deadBEEF",
                                            "  q",
                                            "abab",
                                            "aabbab",
                                            std::string(150, 'a'),
                                            std::string(149, 'a'),
                                            std::string(201, 'a'),
                                            std::string(60, 'a'),
                                            std::string(59, 'a'),
                                            std::string(500, 'a'),
                                            "ex",
                                            "x",
                                            "zx"};
    for (const std::string& p : patterns) {
        const auto c = regex(p);
        const std::regex oracle(p);
        for (const std::string& t : texts)
            EXPECT_EQ(matches(c, t), std::regex_match(t, oracle)) << p << " on '" << t << "'";
    }
}

TEST(Grammar, RegexKnowsUnicode) {
    EXPECT_TRUE(matches(regex("[à-ü]+"), "éü"));
    EXPECT_FALSE(matches(regex("[à-ü]+"), "e"));
    EXPECT_TRUE(matches(regex("\\p{Lu}\\p{L}*"), "Élan"));
    EXPECT_FALSE(matches(regex("\\p{Lu}\\p{L}*"), "élan"));
    EXPECT_TRUE(matches(regex("\\u65e5本."), "日本語"));
    EXPECT_TRUE(matches(regex("[^a]"), "😀"));
    EXPECT_TRUE(matches(regex("\\u{1F600}|\\uD83D\\uDE01"), "😁"));
    EXPECT_FALSE(matches(regex("."), "\xff"));
    EXPECT_FALSE(matches(regex("."), "\xed\xa0\x80"));  // half of a surrogate pair
}

TEST(Grammar, RegexRefusesWhatItCannotDo) {
    for (const auto& [pattern, part] :
         std::vector<std::pair<std::string, std::string>>{{"(a)\\1", "back-references"},
                                                          {"a(?=b)", "look-around"},
                                                          {"\\bword", "\\b"},
                                                          {"(ab", "needed ')'"},
                                                          {"ab)", "closes nothing"},
                                                          {"[ab", "needed ']'"},
                                                          {"*a", "repetition of nothing"},
                                                          {"a{5,2}", "min <= max"},
                                                          {"a{2000000}", "1000000"},
                                                          {"x$y", "$"},
                                                          {"[b-a]", "range"},
                                                          {"\\p{Nope}", "category"},
                                                          {std::string(5000, '('), "nest"}})
        expect_error([&] { regex(pattern); }, part);
}

TEST(Grammar, GbnfTakesItsLanguage) {
    const auto c = gbnf(R"gbnf(# sums
root  ::= term ( [-+] term )*   # left to right
term  ::= factor ("*" factor
        | "/" factor)*
factor ::= number | "(" root ")"
number ::= [0-9]+ ("." [0-9]{1,2})?
)gbnf");
    for (const char* good : {"1", "1+2", "(1+2)*3/4", "12.5-(3)", "((((7))))"})
        EXPECT_TRUE(matches(c, good)) << good;
    for (const char* bad : {"", "1+", "(1", "1.234", "a", "1 + 2"})
        EXPECT_FALSE(matches(c, bad)) << bad;
    EXPECT_TRUE(matches(gbnf("root ::= \"\\x41\\u00e9\" [^\\n]? |\n  \"b\""), "Aé!"));
    EXPECT_TRUE(matches(gbnf("root ::= a{3}\na ::= [ab] | \"cd\""), "acdb"));
}

TEST(Grammar, GbnfErrorsHaveAPlace) {
    expect_error([] { gbnf("root ::= \"a"); }, "line 1, column 12");
    expect_error([] { gbnf("root ::= thing\n"); }, "'thing' is used and not defined");
    expect_error([] { gbnf("start ::= \"a\""); }, "no rule 'root'");
    expect_error([] { gbnf("root ::= root \"a\" | \"b\""); }, "'root' is left-recursive");
    expect_error([] { gbnf("root ::= x? root | \"b\"\nx ::= \"a\""); }, "left-recursive");
    expect_error([] { gbnf("root ::= \"a\" root"); }, "no text that ends");
    expect_error([] { gbnf("root ::= \"a\"\nroot ::= \"b\""); }, "defined twice");
    expect_error([] { gbnf("root ::= [b-a]"); }, "range");
    expect_error([] { gbnf("root = \"a\""); }, "needed '::='");
}

TEST(Grammar, LarkTakesItsLanguage) {
    const auto lark = [](const std::string& text) {
        return Constraint::lark(text, small_vocabulary());
    };
    const auto c = lark(R"lark(
// calls
?start: call (";" call)* -> program
call: NAME "(" [args] ")"
args: value ("," value)~0..2
value: SIGNED_INT | "on"i | /"[^"\/]*"/ | "a".."f"~2
NAME.2: /[a-z]+/
     | "_"
%import common.SIGNED_INT
%import common.WS
%ignore WS
)lark");
    for (const char* good :
         {"f()", "f ( 1 , -2,3 ) ; g(ON)", "_(\"x y\")", "run(ce)", "a();\n b()"})
        EXPECT_TRUE(matches(c, good)) << good;
    for (const char* bad : {"f(", "F()", "f(1,2,3,4)", "f(1 2)", "r un()", "f(\"a/b\")", "run(cg)"})
        EXPECT_FALSE(matches(c, bad)) << bad;
    expect_error([&] { lark("start: thing"); }, "'thing' is used and not defined");
    expect_error([&] { lark("rule: \"a\""); }, "no rule 'start'");
    expect_error([&] { lark("start: \"a\n"); }, "line 1");
    expect_error([&] { lark("%declare X\nstart: \"a\""); }, "directive");
    expect_error([&] { lark("%import common.NOPE\nstart: NOPE"); }, "common.NOPE");
}

// A tag that the vocabulary has as a special token: only its id passes, never its spelling.
TEST(Grammar, SpecialTokensAreAskedForById) {
    auto tokens = std::vector<std::string>{"<", "x", ">", "<x>", Rules::special_bytes(4), ""};
    const auto trie = std::make_shared<const TokenTrie>(tokens, std::vector<int32_t>{5});
    Rules rules;
    const auto root = rules.add_rule(
        "root", rules.sequence({rules.token(4), rules.repeat(rules.chars(CharSet::all()), 0)}));
    ConstraintState state(Constraint::of(rules, root, trie));
    TokenMask mask;
    state.mask(mask);
    EXPECT_EQ(allowed(mask, trie->tokens()), std::vector<int32_t>{4});
    ASSERT_TRUE(state.accept(4));
    state.mask(mask);
    EXPECT_EQ(allowed(mask, trie->tokens()), (std::vector<int32_t>{0, 1, 2, 3, 5}));
}

TEST(Grammar, ChoicesShareBeginnings) {
    const auto c = Constraint::choices({"ab", "abc", "xyz", ""}, small_vocabulary());
    for (const char* good : {"ab", "abc", "xyz", ""}) EXPECT_TRUE(matches(c, good)) << good;
    for (const char* bad : {"a", "abcd", "xy"}) EXPECT_FALSE(matches(c, bad)) << bad;
    expect_error([] { Constraint::choices({}, small_vocabulary()); }, "needed at least one");
}

TEST(Grammar, MasksAreWhatCanBeTaken) {
    const std::vector<std::shared_ptr<Constraint>> all = {
        regex("(ab|abc|日本)*[0-9]{1,3}"),
        regex("a{100,300}"),
        regex("(a|b){40}c?"),
        regex(".{2,500}x"),
        gbnf("root ::= \"{\" (root (\",\" root)*)? \"}\" | \"a\"+"),
        Constraint::json_object(small_vocabulary()),
        Constraint::choices({"hello world", "hello", "value"}, small_vocabulary())};
    for (const auto& c : all)
        for (uint64_t seed = 0; seed < 6; ++seed) expect_masks_by_definition(c, seed);
}

TEST(Grammar, EndsExactlyWhereTheGrammarDoes) {
    const auto trie = small_vocabulary();
    ConstraintState state(Constraint::regex("ab?", trie));
    const int32_t end = trie->ends().front();
    TokenMask mask;
    state.mask(mask);
    EXPECT_FALSE(mask.allows(end));
    EXPECT_FALSE(state.accept(end));
    ASSERT_TRUE(state.accept('a'));
    state.mask(mask);
    EXPECT_TRUE(mask.allows(end) && mask.allows('b'));
    EXPECT_TRUE(state.may_end());
    EXPECT_FALSE(state.must_end());
    ASSERT_TRUE(state.accept('b'));
    EXPECT_TRUE(state.must_end());
    state.mask(mask);
    EXPECT_EQ(allowed(mask, trie->tokens()), std::vector<int32_t>{end});
    state.undo(1);
    EXPECT_FALSE(state.must_end());
    ASSERT_TRUE(state.accept('b'));
    ASSERT_TRUE(state.accept(end));
    EXPECT_EQ(state.accepted(), 3);
}

// Big counts cost neither states nor masks of their own.
TEST(Grammar, LargeRepetitionsAreCounted) {
    const auto trie = small_vocabulary();
    const auto c = Constraint::regex("(a|bc){1000,200000}", trie);
    ConstraintState state(c);
    EXPECT_TRUE(state.accept_text(std::string(999, 'a')));
    EXPECT_FALSE(state.may_end());
    EXPECT_TRUE(state.accept_text("bc"));
    EXPECT_TRUE(state.may_end());
    EXPECT_FALSE(state.accept_text(std::string(199001, 'a')));
    EXPECT_TRUE(state.accept_text(std::string(199000, 'a')));
    EXPECT_TRUE(state.must_end());
}

TEST(GrammarConstraint, BeginsAfterItsStart) {
    const auto trie = small_vocabulary();
    const auto id_of = [&](const std::string& bytes) {
        for (int32_t id = trie->tokens() - 1; id >= 0; --id)
            if (trie->bytes_of(id) == bytes) return id;
        return -1;
    };
    GrammarConstraint c(Constraint::choices({"ab", "abc"}, trie), {.text = "a.com"});
    for (const char* free : {"hello", "na", ".com"}) {
        EXPECT_EQ(c.mask(), nullptr) << free;
        c.accept(id_of(free));
    }
    const auto now = [&] { return allowed(*c.mask(), trie->tokens()); };
    ASSERT_NE(c.mask(), nullptr);
    EXPECT_TRUE(c.mask()->allows(id_of("  ")) && c.mask()->allows(id_of("abc")));
    c.accept(id_of("\n"));
    c.accept('a');
    EXPECT_FALSE(c.mask()->allows(id_of("\n")));
    c.accept('b');
    EXPECT_EQ(now(), (std::vector<int32_t>{'c', trie->ends().front()}));
    c.accept('c');
    EXPECT_TRUE(c.finished());
    c.rewind(1);
    EXPECT_FALSE(c.finished());
    c.accept('x');  // not allowed
    EXPECT_TRUE(c.finished());
    EXPECT_EQ(now(), std::vector<int32_t>{trie->ends().front()});
    c.rewind(5);  // x, b, a, the line end and the start
    EXPECT_EQ(c.mask(), nullptr);
    c.accept(id_of("a"));
    EXPECT_EQ(c.mask(), nullptr);
}

// Whatever is taken back, what is left behaves as if nothing else had been.
TEST(GrammarConstraint, RewindingLeavesNoTrace) {
    const auto trie = small_vocabulary();
    const auto compiled = Constraint::json_object(trie);
    Random random(3);
    GrammarConstraint c(compiled, {.tokens = {'#'}});
    std::vector<int32_t> tokens;
    for (int step = 0; step < 400; ++step) {
        if (random.below(3) == 0 && !tokens.empty()) {
            const size_t n = 1 + random.below(std::min<size_t>(tokens.size(), 6));
            tokens.resize(tokens.size() - n);
            c.rewind(n);
        } else {
            const TokenMask* mask = c.mask();
            const auto ids =
                mask ? allowed(*mask, trie->tokens()) : std::vector<int32_t>{'#', 'a', 'b', 'c'};
            const int32_t id = random.below(20) == 0 ? 'z' : ids[random.below(ids.size())];
            tokens.push_back(id);
            c.accept(id);
        }
        GrammarConstraint fresh(compiled, {.tokens = {'#'}});
        for (const int32_t id : tokens) fresh.accept(id);
        ASSERT_EQ(fresh.finished(), c.finished());
        const TokenMask *a = fresh.mask(), *b = c.mask();
        ASSERT_EQ(a == nullptr, b == nullptr);
        if (a) {
            ASSERT_EQ(a->words, b->words);
        }
    }
}

}  // namespace exl3::test
