#include "text/jinja.h"

#include <gtest/gtest.h>

#include <thread>

namespace exl3 {
namespace {

Result<std::string> render(const std::string& source, const Json& vars = Json::object(),
                           const RenderOptions& options = {}) {
    Result<JinjaTemplate> parsed = JinjaTemplate::parse(source, "t");
    if (!parsed) return parsed.error();
    return parsed->render(vars, options);
}

std::string text(const std::string& source, const Json& vars = Json::object()) {
    const Result<std::string> got = render(source, vars);
    return got ? Result<std::string>(got).value() : "error: " + std::string(got.error().what());
}

std::string error(const std::string& source, const Json& vars = Json::object(),
                  const RenderOptions& options = {}) {
    const Result<std::string> got = render(source, vars, options);
    return got ? "no error" : got.error().what();
}

TEST(Jinja, LiteralsPrintAsInPython) {
    EXPECT_EQ(text("{{ 1 }} {{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 1e-5 }} {{ 1e400 }}"),
              "1 1.0 1e+16 1000000000000000.0 1e-05 inf");
    EXPECT_EQ(text("{{ 0x1f }} {{ 0b11 }} {{ 0o17 }} {{ 1_000 }}"), "31 3 15 1000");
    EXPECT_EQ(text("{{ true }} {{ None }} {{ [1, 'a', none] }} {{ (1,) }} {{ {'k': 1.5} }}"),
              "True None [1, 'a', None] (1,) {'k': 1.5}");
    EXPECT_EQ(text("{{ [\"it's\", 'a\"b', '\\n\\x00\\u200b'] }}"),
              "[\"it's\", 'a\"b', '\\n\\x00\\u200b']");
    EXPECT_EQ(text("{{ 'a' 'b' }}{{ '\\x41\\u00e9\\101\\q' }}"),
              "abA\xc3\xa9"
              "A\\q");
}

TEST(Jinja, NumbersKeepTheirKindAndRefuseToOverflow) {
    EXPECT_EQ(
        text("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 4 / 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }}"),
        "3 -4 2 2.0 8 0.5");
    EXPECT_EQ(text("{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 1 == 1.0 }} {{ '1' == 1 }}"),
              "4 64 True False");
    EXPECT_EQ(text("{{ i }} {{ f }} {{ b }}", {{"i", 1}, {"f", 1.0}, {"b", 18446744073709551615u}}),
              "1 1.0 18446744073709551615");
    EXPECT_EQ(text("{{ 2 ** 100 }}"), "1267650600228229401496703205376");
    EXPECT_EQ(error("{{ 2 ** 200 }}"), "t: line 1, column 6: the integer has more than 127 bits");
    EXPECT_EQ(error("{{ 1 // 0 }}"), "t: line 1, column 6: integer division or modulo by zero");
}

TEST(Jinja, StringsCountCodePoints) {
    EXPECT_EQ(text("{{ s|length }} {{ s[1] }} {{ s[::-1] }} {{ s[-2:] }}",
                   {{"s", "h\xc3\xa9\xf0\x9f\x98\x80"}}),
              "3 \xc3\xa9 \xf0\x9f\x98\x80\xc3\xa9h \xc3\xa9\xf0\x9f\x98\x80");
    EXPECT_EQ(text("{{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split() }} {{ 'xxaxx'.strip('x') }}"),
              "['a', 'b,c'] ['a', 'b'] a");
    EXPECT_EQ(text("{{ \"it's\".title() }} {{ \"it's\"|title }} {{ 'Stra\xc3\x9f"
                   "e'.upper() }}"),
              "It'S It's STRASSE");
    EXPECT_EQ(text("{{ '%s-%03d-%.1f' % ('a', 7, 2.25) }} {{ '{:>4}|{x}'.format(1, x=2) }}"),
              "a-007-2.2    1|2");
}

TEST(Jinja, UndefinedIsSilentUntilUsed) {
    EXPECT_EQ(text("[{{ x }}][{{ x or 'd' }}][{{ x is defined }}][{{ x|length }}]"),
              "[][d][False][0]");
    EXPECT_EQ(text("{% for a in x %}{% else %}none{% endfor %}{{ none.foo }}{{ {}.foo }}"), "none");
    EXPECT_EQ(error("{{ x.y is defined }}"), "t: line 1, column 6: 'x' is undefined");
    EXPECT_EQ(error("{{ d.a.b }}", {{"d", Json::object()}}),
              "t: line 1, column 8: 'dict object' has no attribute 'a'");
    EXPECT_EQ(error("{{ [1][4].x }}"), "t: line 1, column 11: list object has no element 4");
}

TEST(Jinja, WhitespaceControl) {
    EXPECT_EQ(text("a\n  {% if true %}\n b\n  {% endif %}\nc\n"), "a\n b\nc");
    EXPECT_EQ(text(" {{- 1 -}} \n {#- c -#} x"), "1x");
    EXPECT_EQ(text("  {%+ if true +%}\nx{% endif %}"), "  \nx");
    EXPECT_EQ(text("a\r\nb\r"), "a\nb");
    EXPECT_EQ(text("{% raw -%}\n {{ x }} {%- endraw %}\ny"), "{{ x }}y");
}

TEST(Jinja, LoopsAndTheirVariable) {
    EXPECT_EQ(text("{% for x in [1,2,3] %}{{ loop.index }}{{ loop.revindex0 }}{{ loop.first }}"
                   "{{ loop.previtem }}{{ loop.nextitem }},{% endfor %}"),
              "12True2,21False13,30False2,");
    EXPECT_EQ(
        text("{% for k, v in {'a': 1, 'b': 0}.items() if v %}{{ k }}{{ loop.length }}{% endfor %}"),
        "a1");
    EXPECT_EQ(
        text("{% for x in [1,2] %}{{ loop.cycle('a', 'b') }}{{ loop.changed(1) }}{% endfor %}"),
        "aTruebFalse");
    EXPECT_EQ(text("{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}"
                   "{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}"),
              "13");
    EXPECT_EQ(text("{% for x in [[1,[2]],[3]] recursive %}{% if x is iterable %}({{ loop(x) }})"
                   "{% else %}{{ x }}{{ loop.depth }}{% endif %}{% endfor %}"),
              "(12(23))(32)");
}

TEST(Jinja, ScopesFollowTheTextOfTheTemplate) {
    EXPECT_EQ(
        text("{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}"),
        "231");
    EXPECT_EQ(text("{% if true %}{% set x = 2 %}{% endif %}{{ x }}"), "2");
    EXPECT_EQ(text("{% set ns = namespace(n=0) %}{% for i in [1,2] %}{% set ns.n = ns.n + i %}"
                   "{% endfor %}{{ ns.n }}"),
              "3");
    EXPECT_EQ(
        text(
            "{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}{% set x = 2 %}{{ f() }}"),
        "12");
    EXPECT_EQ(
        text("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}"),
        "21");
    EXPECT_EQ(text("{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}"), "12");
    EXPECT_EQ(text("{% set a, ns.b = 1, 2 %}", {{"ns", 1}}),
              "error: t: line 1, column 11: cannot assign attribute on non-namespace object");
}

TEST(Jinja, MacrosAndCalls) {
    EXPECT_EQ(text("{% macro f(a, b=a, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}"
                   "{{ f(1) }}{{ f(1, c=2) }}{{ f() }}"),
              "11x;112;x;");
    EXPECT_EQ(text("{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, x=2) }}"),
              "(1,){'x': 2}");
    EXPECT_EQ(
        text("{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}"),
        "3210");
    EXPECT_EQ(text("{% macro box() %}[{{ caller(1) }}]{% endmacro %}{% call(x) box() %}{{ x }}{% "
                   "endcall %}"),
              "[1]");
    EXPECT_EQ(
        text("{% set x | upper %}a{{ 'b' }}{% endset %}{{ x }}{% filter trim %} c {% endfilter %}"),
        "ABc");
    EXPECT_EQ(error("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}"),
              "t: line 1, column 35: macro 'f' takes not more than 1 argument(s)");
}

TEST(Jinja, LazyFiltersCanBeWalkedOnce) {
    EXPECT_EQ(text("{% set g = [1,2,3]|select('odd') %}{{ g|list }}{{ g|list }}"), "[1, 3][]");
    EXPECT_EQ(text("{{ [1]|map('nosuch') is defined }}"), "True");
    EXPECT_EQ(error("{{ [1]|map('nosuch')|list }}"),
              "t: line 1, column 22: No filter named 'nosuch' found.");
    EXPECT_EQ(text("{% if []|select %}true{% endif %}"), "true");
}

TEST(Jinja, JsonIsWrittenAsByPython) {
    const Json v = {{"b", {1, 2.0, nullptr, true}}, {"a", "<\xc3\xa9>\n"}};
    EXPECT_EQ(text("{{ v|tojson }}", {{"v", v}}),
              "{\"b\": [1, 2.0, null, true], \"a\": \"<\xc3\xa9>\\n\"}");
    EXPECT_EQ(text("{{ v|tojson(indent=1, sort_keys=true, ensure_ascii=true) }}", {{"v", v}}),
              "{\n \"a\": \"<\\u00e9>\\n\",\n \"b\": [\n  1,\n  2.0,\n  null,\n  true\n ]\n}");
    EXPECT_EQ(error("{{ x|tojson }}"),
              "t: line 1, column 6: Object of type Undefined is not JSON serializable");
}

TEST(Jinja, TheSandboxRefusesChanges) {
    for (const char* call : {"l.append(1)", "l.pop()", "l.clear()", "d.update({})", "d.pop('a')"})
        EXPECT_NE(error("{{ " + std::string(call) + " }}", {{"l", {1}}, {"d", {{"a", 1}}}})
                      .find("is unsafe."),
                  std::string::npos)
            << call;
    EXPECT_EQ(text("[{{ x.__class__ }}][{{ x.__class__ is defined }}]", {{"x", 1}}), "[][False]");
    EXPECT_NE(error("{{ x.__class__.y }}", {{"x", 1}}).find("is unsafe."), std::string::npos);
}

TEST(Jinja, MarkupEscapesWhatIsAddedToIt) {
    EXPECT_EQ(text("{{ ('<'|safe) + '<' }}{{ '<' ~ '<'|safe }}{{ '<'|e }}{{ ('%s'|safe) % '<' }}"),
              "<&lt;<<&lt;&lt;");
    EXPECT_EQ(text("{% autoescape true %}{{ '<' }}{{ '<'|safe }}{% endautoescape %}{{ '<' }}"),
              "&lt;<<");
}

TEST(Jinja, TimeIsTheOneGiven) {
    RenderOptions options;
    options.now = CivilTime::parse("2026-01-15").value();
    EXPECT_EQ(render("{{ strftime_now('%d %b %Y, %H:%M:%S %A %j %U %-d %e|%z') }}", Json::object(),
                     options)
                  .value(),
              "15 Jan 2026, 12:34:56 Thursday 015 02 15 15|");
    EXPECT_EQ(text("{{ strftime_now('%Y')|length }}"), "4");
    EXPECT_FALSE(CivilTime::parse("2026-02-30"));
    EXPECT_FALSE(CivilTime::parse("2026-01-15 25:00"));
    EXPECT_FALSE(CivilTime::parse("15.1.2026"));
}

TEST(Jinja, ErrorsSayWhere) {
    EXPECT_EQ(error("a\n  {{ 1 + }}"), "t: line 2, column 10: unexpected 'end of print statement'");
    EXPECT_EQ(error("{{ '\xc3\xa9' ! }}"), "t: line 1, column 8: unexpected char '!' at 7");
    EXPECT_EQ(
        error("{% for x in y %}"),
        "t: line 1, column 17: Unexpected end of template. Jinja was looking for the following "
        "tags: 'endfor' or 'else'. The innermost block that needs to be closed is 'for'.");
    EXPECT_EQ(error("{{ x|nosuch }}"), "t: line 1, column 6: No filter named 'nosuch'.");
    EXPECT_EQ(text("{% if false %}{{ x|nosuch }}{% endif %}"), "");
    EXPECT_EQ(error("\n{{ raise_exception('as it is') }}"), "as it is");
    EXPECT_EQ(error("{% include 'x' %}"),
              "t: line 1, column 4: 'include' is not supported: a chat template is one file");
    EXPECT_EQ(error("{% break %}"), "t: line 1, column 4: break or continue outside of a loop");
    EXPECT_EQ(error("\xff"), "t: found text that is not UTF-8");
    EXPECT_EQ(error("{{ x }}", {{"x", "\xff"}}), "t: variable 'x': found text that is not UTF-8");
    EXPECT_EQ(error("{{ 1 }}", Json::array()),
              "t: found variables of type array, needed an object");
}

TEST(Jinja, NamesWhatItTakesFromOutside) {
    const JinjaTemplate t = JinjaTemplate::parse(
                                "{% set y = x %}{{ y }}{{ range(3) }}{% for m in messages %}{{ m }}"
                                "{% if think is defined %}{% endif %}{% endfor %}",
                                "t")
                                .value();
    EXPECT_EQ(t.free_variables(), (std::vector<std::string>{"messages", "think", "x"}));
}

TEST(Jinja, OneTemplateServesManyThreads) {
    const JinjaTemplate t = JinjaTemplate::parse(
                                "{% macro f(x) %}{{ 'abc'[x] }}{% endmacro %}"
                                "{% for i in range(n) %}{{ f(i % 3) }}{% endfor %}",
                                "t")
                                .value();
    std::vector<std::string> got(4);
    {
        std::vector<std::jthread> threads;
        for (size_t i = 0; i < got.size(); ++i)
            threads.emplace_back([&, i] { got[i] = t.render({{"n", 300}}).value(); });
    }
    for (const std::string& g : got) EXPECT_EQ(g, got[0]);
    EXPECT_EQ(got[0].size(), 300u);
}

// ---- templates that mean harm ----

std::string repeated(const std::string& s, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += s;
    return out;
}

// Limits low enough for a test to reach them at once.
RenderOptions tight() {
    RenderOptions o;
    o.max_steps = 1'000'000;
    o.max_memory_bytes = size_t{16} << 20;
    return o;
}

bool refused(const std::string& source, const std::string& because) {
    const std::string message = error(source, {{"n", 1000000000}}, tight());
    if (message.find(because) != std::string::npos) return true;
    ADD_FAILURE() << source.substr(0, 100) << ": " << message.substr(0, 200);
    return false;
}

TEST(JinjaLimits, Time) {
    const std::string loop = "{% for i in range(100000) %}", end = "{% endfor %}";
    EXPECT_TRUE(refused(loop + loop + loop + "x" + end + end + end, "steps"));
    EXPECT_TRUE(refused(loop + loop + "{% set x = i %}" + end + end, "steps"));
    EXPECT_TRUE(refused("{{ range(100001) }}", "MAX_RANGE"));
    EXPECT_TRUE(
        refused("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
                "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x[0] }}{{ ns.x }}",
                "steps"));
    EXPECT_TRUE(
        refused("{% set s = 'a' * 1000000 %}{% for i in range(100000) %}"
                "{{ (s ~ 'b').rfind('a' * 5000 ~ 'c') }}{% endfor %}",
                "steps"));
    EXPECT_TRUE(
        refused("{% set x = 'ab' * 1000000 %}{% for i in range(100000) %}{{ x.count('b') }}"
                "{% endfor %}",
                "steps"));
}

TEST(JinjaLimits, Memory) {
    for (const char* bomb :
         {"{{ 'a' * n }}", "{{ [0] * n }}", "{{ 'a'.center(n) }}", "{{ 'a'.zfill(n) }}",
          "{{ ('%' ~ n ~ 'd') % 1 }}", "{{ '{:1000000000}'.format(1) }}",
          "{{ '\\t'.expandtabs(n) }}", "{{ 'a\\nb'|indent(n) }}", "{{ [1]|tojson(indent=n) }}",
          "{{ ('a' * 10000).replace('', 'b' * 100000) }}",
          "{{ ('a' * 100000)|list|join('b' * 100000) }}", "{{ [1]|batch(n, 0)|list }}",
          "{{ [1]|slice(n)|list }}", "{{ '%.*f' % (n, 1) }}",
          "{% for i in range(100) %}{% set ns = namespace() %}{% set ns.x = 'a' * 100000000 %}{% "
          "endfor %}"
          "{% set l = ('a' * 10000)|list * 10000 %}"}) {
        const std::string message = error(bomb, {{"n", 1000000000}}, tight());
        EXPECT_TRUE(message.find("bytes") != std::string::npos ||
                    message.find("too large") != std::string::npos ||
                    message.find("steps") != std::string::npos)
            << bomb << ": " << message;
    }
    EXPECT_TRUE(
        refused("{% set ns = namespace(s='abcdefgh') %}{% for i in range(1000) %}"
                "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
                "bytes"));
    EXPECT_TRUE(
        refused("{% set ns = namespace(l=[1]) %}{% for i in range(1000) %}"
                "{% set ns.l = [ns.l|join(','), ns.l|join(',')] %}{% endfor %}",
                "bytes"));
    RenderOptions small;
    small.max_output_bytes = 10;
    EXPECT_EQ(error("{% for i in range(20) %}x{% endfor %}", Json::object(), small),
              "t: line 1, column 25: the output is longer than 10 bytes");
    // What is let go can be used again.
    EXPECT_EQ(text("{% for i in range(100) %}{% set x = 'a' * 5000000 %}{% endfor %}ok"), "ok");
}

TEST(JinjaLimits, Depth) {
    EXPECT_TRUE(refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nests"));
    EXPECT_TRUE(
        refused("{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}"
                "{% endcall %}{% endmacro %}{{ g() }}",
                "nests"));
    EXPECT_TRUE(refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nests"));
    EXPECT_TRUE(
        refused("{% set ns = namespace(x=1) %}{% for i in range(100000) %}"
                "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
                "nests"));
    EXPECT_TRUE(
        refused("{% set ns = namespace(x=[1]) %}{% for i in range(20000) %}"
                "{% set ns.x = ns.x|map('string') %}{% endfor %}{{ ns.x|list }}",
                "nests"));
    EXPECT_TRUE(
        refused("{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}", "nesting"));
    EXPECT_TRUE(refused("{{ " + repeated("[", 100000), "nesting"));
    EXPECT_TRUE(refused("{{ " + repeated("not ", 100000) + "1 }}", "nesting"));
    EXPECT_TRUE(refused("{{ " + repeated("-", 100000) + "1 }}", "nesting"));
    EXPECT_TRUE(refused("{{ 1" + repeated("+1", 100000) + " }}", "levels"));
    EXPECT_TRUE(refused("{{ a" + repeated(".a", 100000) + " }}", "levels"));
    EXPECT_TRUE(refused("{{ a" + repeated("|e", 100000) + " }}", "levels"));
    EXPECT_TRUE(refused(repeated("{% if 1 %}", 10000), "nesting"));
    EXPECT_EQ(text("{{ 0" + repeated("+1", 1000) + " }}"), "1000");
}

TEST(JinjaLimits, CyclesAreFreed) {
    // Leak checkers see what is not; a namespace can hold itself, a macro and a loop.
    EXPECT_EQ(text("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}"),
              "<Namespace {'self': <Namespace {...}>}>");
    EXPECT_EQ(
        text("{% set ns = namespace() %}{% for i in [1,2] recursive %}{% set ns.loop = loop %}"
             "{% macro f() %}{{ ns.f }}{% endmacro %}{% set ns.f = f %}{% set q = "
             "loop.changed(loop) %}"
             "{% endfor %}ok"),
        "ok");
}

}  // namespace
}  // namespace exl3
