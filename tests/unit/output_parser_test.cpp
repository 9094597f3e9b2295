#include "api/output_parser.h"

#include <gtest/gtest.h>

#include <random>

#include "api/tool_format.h"

namespace exl3::api {
namespace {

using Kind = OutputEvent::Kind;

struct FoundCall {
    std::string id, name, arguments;
    bool ended = false;
    bool operator==(const FoundCall&) const = default;
};
struct Found {
    std::string reasoning, content;
    std::vector<FoundCall> calls;
    bool operator==(const Found&) const = default;
};

void add(Found& f, const std::vector<OutputEvent>& events) {
    for (const OutputEvent& e : events) {
        if (e.kind == Kind::reasoning) f.reasoning += e.text;
        if (e.kind == Kind::content) f.content += e.text;
        if (e.kind == Kind::call_start) {
            EXPECT_EQ(static_cast<size_t>(e.call), f.calls.size());
            f.calls.push_back({e.id, e.name, "", false});
        }
        if (e.kind == Kind::call_arguments)
            f.calls.at(static_cast<size_t>(e.call)).arguments += e.text;
        if (e.kind == Kind::call_end) f.calls.at(static_cast<size_t>(e.call)).ended = true;
    }
}

OutputParserOptions options_of(const std::string& format) {
    OutputParserOptions o;
    o.syntax.think_open = "<think>";
    o.syntax.think_close = "</think>";
    o.syntax.harmony = format == "harmony";
    if (!format.empty() && format != "harmony") o.syntax.tools = find_tool_format(format);
    o.syntax.hidden = {"<|im_end|>"};
    ToolSpec tool{.name = "get_weather"};
    tool.parameters = {
        {"type", "object"},
        {"properties", {{"city", {{"type", "string"}}}, {"days", {{"type", "integer"}}}}}};
    o.tools = {tool};
    o.make_id = [n = 0]() mutable { return "call_" + std::to_string(n++); };
    return o;
}

Found parse(const std::string& text, const OutputParserOptions& o,
            const std::vector<size_t>& cuts = {}) {
    OutputParser parser(o);
    Found f;
    size_t at = 0;
    for (const size_t cut : cuts) {
        add(f, parser.push(std::string_view(text).substr(at, cut - at)));
        at = cut;
    }
    add(f, parser.push(std::string_view(text).substr(at)));
    add(f, parser.finish());
    for (const FoundCall& c : f.calls) {
        EXPECT_TRUE(c.ended);
        EXPECT_TRUE(Json::accept(c.arguments)) << c.arguments;
    }
    return f;
}

// The parse of the whole text, having checked that pieces of any size give the same.
Found parse_any_way(const std::string& text, const OutputParserOptions& o) {
    const Found whole = parse(text, o);
    std::vector<size_t> all;
    for (size_t i = 1; i < text.size(); ++i) {
        EXPECT_EQ(parse(text, o, {i}), whole) << "cut at " << i << " of " << text;
        all.push_back(i);
    }
    EXPECT_EQ(parse(text, o, all), whole) << "byte by byte: " << text;
    return whole;
}

struct Case {
    const char* format;
    std::string text;
    std::string content;
    std::vector<std::pair<std::string, std::string>> calls;  // name, arguments as JSON
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.format << ": " << c.text;
}

const std::string kBonn = R"({"city": "Bonn", "days": 3})";

const Case kCases[] = {
    {"hermes",
     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + kBonn + "}\n</tool_call>",
     "",
     {{"get_weather", kBonn}}},
    {"hermes",
     "Let me look.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n"
     "{\"name\": \"b\", \"arguments\": {\"x\": [1, {\"y\": null}]}}\n</tool_call>",
     "Let me look.",
     {{"a", "{}"}, {"b", R"({"x": [1, {"y": null}]})"}}},
    {"hermes",
     R"(<tool_call>{"arguments": {"x": 1}, "name": "late"}</tool_call> done)",
     "done",
     {{"late", R"({"x": 1})"}}},
    {"hermes",
     R"(<tool_call>{"name": "s", "arguments": "{\"x\": 1}"}</tool_call>)",
     "",
     {{"s", R"({"x": 1})"}}},
    {"hermes",
     "<tool_call>\n{'name': 'py', 'arguments': {'x': True, 'y': None, 'z': "
     "'it\\'s',}}\n</tool_call>",
     "",
     {{"py", R"({"x": true, "y": null, "z": "it's"})"}}},
    {"hermes",
     "<tool_call>\n{\"name\": \"cut\", \"arguments\": {\"text\": \"a\nb",
     "",
     {{"cut", R"({"text": "a\nb"})"}}},
    {"hermes", "<tool_call>\nnot a call at all", "<tool_call>\nnot a call at all", {}},
    {"hermes", "a <tool_ b </tool_call c", "a <tool_ b </tool_call c", {}},
    {"hermes", "plain <|im_end|>text", "plain text", {}},
    {"qwen3_coder",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\n123\n</"
     "parameter>\n<parameter=days>\n3\n"
     "</parameter>\n</function>\n</tool_call>",
     "",
     {{"get_weather", R"({"city": "123", "days": 3})"}}},
    {"qwen3_coder",
     "<function=f>\n<parameter=code>\n\n  x = 1\n\n</parameter>\n</function>",
     "",
     {{"f", R"({"code": "\n  x = 1\n"})"}}},
    {"glm4_5",
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Bonn</arg_value>\n<arg_key>days</"
     "arg_key>\n"
     "<arg_value>3</arg_value>\n</tool_call>",
     "",
     {{"get_weather", kBonn}}},
    {"glm4_5", "<tool_call>now</tool_call>", "", {{"now", "{}"}}},
    {"minimax_m2",
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
     "name=\"city\">Bonn</parameter>\n"
     "<parameter name=\"days\">3</parameter>\n</invoke>\n<invoke "
     "name=\"now\">\n</invoke>\n</minimax:tool_call>",
     "",
     {{"get_weather", kBonn}, {"now", "{}"}}},
    {"deepseek_v4",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter "
     "name=\"city\" "
     "string=\"true\">Bonn</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
     "string=\"false\">3</｜DSML｜parameter>\n"
     "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "",
     {{"get_weather", kBonn}}},
    {"deepseek_v3",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" +
         kBonn +
         "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n``"
         "`<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "",
     {{"get_weather", kBonn}, {"now", "{}"}}},
    {"deepseek_v3",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" + kBonn +
         "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "",
     {{"get_weather", kBonn}}},
    {"kimi_k2",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_"
     "begin|>" +
         kBonn + "<|tool_call_end|><|tool_calls_section_end|>",
     "",
     {{"get_weather", kBonn}}},
    {"mistral",
     "[TOOL_CALLS]get_weather[ARGS]" + kBonn + "[TOOL_CALLS]now[CALL_ID]abc123def[ARGS]{}",
     "",
     {{"get_weather", kBonn}, {"now", "{}"}}},
    {"mistral",
     "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": " + kBonn +
         ", \"id\": \"abc123def\"}]",
     "",
     {{"get_weather", kBonn}}},
    {"llama3_json",
     "{\"name\": \"get_weather\", \"parameters\": " + kBonn +
         "}; {\"name\": \"now\", \"parameters\": {}}",
     "",
     {{"get_weather", kBonn}, {"now", "{}"}}},
    {"llama3_json",
     "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": " + kBonn + "}",
     "",
     {{"get_weather", kBonn}}},
    {"llama3_json", R"({"answer": 42})", R"({"answer": 42})", {}},
    {"llama3_json", R"({"name": "Bob"} is a person)", R"({"name": "Bob"} is a person)", {}},
    {"pythonic",
     "[get_weather(city='Bonn', days=3), now()]",
     "",
     {{"get_weather", kBonn}, {"now", "{}"}}},
    {"pythonic", "[1, 2] is a list", "[1, 2] is a list", {}},
    {"lfm2",
     "<|tool_call_start|>[get_weather(city=\"Bonn\", days=3)]<|tool_call_end|>Done.",
     "Done.",
     {{"get_weather", kBonn}}},
    {"olmo3",
     "<function_calls>\nnow()\nget_weather(city=\"Bonn\", days=3)\n</function_calls>",
     "",
     {{"now", "{}"}, {"get_weather", kBonn}}},
    {"gemma4",
     "<|tool_call>call:get_weather{city:<|\"|>Bonn<|\"|>,days:3}<tool_call|>",
     "",
     {{"get_weather", kBonn}}},
    {"command_a",
     "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": " +
         kBonn + "}]<|END_ACTION|>",
     "",
     {{"get_weather", kBonn}}},
    {"jamba",
     "<tool_calls>[{\"name\": \"now\", \"arguments\": {}}]</tool_calls>",
     "",
     {{"now", "{}"}}},
    {"phi4_mini", "functools[{\"name\": \"now\", \"arguments\": {}}]", "", {{"now", "{}"}}},
    {"hy3",
     "<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:"
     "opensource>city"
     "</arg_key:opensource>\n<arg_value:opensource>Bonn</arg_value:opensource>\n</"
     "tool_call:opensource></tool_calls:opensource>",
     "",
     {{"get_weather", R"({"city": "Bonn"})"}}},
    {"harmony",
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.get_weather "
     "<|constrain|>json<|message|>" +
         kBonn + "<|call|>",
     "",
     {{"get_weather", kBonn}}},
    {"harmony", "<|channel|>final<|message|>Hello <b>", "Hello <b>", {}},
    {"harmony", "just text", "just text", {}},
};

class ToolFormats : public testing::TestWithParam<Case> {};

TEST_P(ToolFormats, FindCallsHoweverTheTextIsCut) {
    const Case& c = GetParam();
    const Found f = parse_any_way(c.text, options_of(c.format));
    EXPECT_EQ(f.content, c.content);
    ASSERT_EQ(f.calls.size(), c.calls.size());
    for (size_t i = 0; i < c.calls.size(); ++i) {
        EXPECT_EQ(f.calls[i].name, c.calls[i].first);
        EXPECT_EQ(Json::parse(f.calls[i].arguments), Json::parse(c.calls[i].second));
    }
}

INSTANTIATE_TEST_SUITE_P(All, ToolFormats, testing::ValuesIn(kCases));

TEST(OutputParser, SplitsReasoning) {
    const auto o = options_of("hermes");
    Found f = parse_any_way("<think>\nWhy <b>?\n</think>\n\nSo.", o);
    EXPECT_EQ(f.reasoning, "Why <b>?");
    EXPECT_EQ(f.content, "So.");
    auto inside = o;
    inside.starts_in_reasoning = true;
    f = parse_any_way(
        "deep thought</think>\n<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call>",
        inside);
    EXPECT_EQ(f.reasoning, "deep thought");
    EXPECT_EQ(f.content, "");
    ASSERT_EQ(f.calls.size(), 1u);
    f = parse_any_way("never ends", inside);
    EXPECT_EQ(f.reasoning, "never ends");
    f = parse_any_way("I wrote <think> here", o);
    EXPECT_EQ(f.content, "I wrote <think> here");
}

TEST(OutputParser, KeepsTextExactlyWithoutSyntax) {
    OutputParserOptions o;
    const std::string text = "  \n a <think> \xe2\x97\x81 {\"x\": 1}\n\n ";
    EXPECT_EQ(parse_any_way(text, o).content, text);
}

TEST(OutputParser, KimiIdsComeBackUnchanged) {
    const Found f = parse(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.a:7<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        options_of("kimi_k2"));
    ASSERT_EQ(f.calls.size(), 1u);
    EXPECT_EQ(f.calls[0].id, "functions.a:7");
    EXPECT_EQ(f.calls[0].name, "a");
}

TEST(OutputParser, OneCallOnly) {
    auto o = options_of("hermes");
    o.max_calls = 1;
    const Found f = parse_any_way(
        "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call>"
        "<tool_call>{\"name\": \"b\", \"arguments\": {}}</tool_call>",
        o);
    EXPECT_EQ(f.calls.size(), 1u);
}

TEST(OutputParser, ArgumentsAppearWhileTheyAreWritten) {
    OutputParser parser(options_of("hermes"));
    Found f;
    add(f, parser.push("<tool_call>{\"name\": \"write\", \"arguments\": {\"text\": \"Once upon"));
    ASSERT_EQ(f.calls.size(), 1u);
    EXPECT_EQ(f.calls[0].arguments, "{\"text\": \"Once upon");
    add(f, parser.push(" a time"));
    EXPECT_EQ(f.calls[0].arguments, "{\"text\": \"Once upon a time");
}

// Any text, of pieces that the formats are made of: whole arguments, no loss of order, and the same
// however it is cut.
TEST(OutputParser, RandomTexts) {
    const std::vector<std::string> parts = {"<tool_call>",
                                            "</tool_call>",
                                            "{",
                                            "}",
                                            "[",
                                            "]",
                                            "\"",
                                            "'",
                                            ":",
                                            ",",
                                            "\"name\"",
                                            "\"arguments\"",
                                            "\\",
                                            "\\u12",
                                            "<function=f>",
                                            "<parameter=a>",
                                            "</parameter>",
                                            "</function>",
                                            "<think>",
                                            "</think>",
                                            "text",
                                            " ",
                                            "\n",
                                            "1e5",
                                            "true",
                                            "<|python_tag|>",
                                            "[TOOL_CALLS]",
                                            "[ARGS]",
                                            "f(",
                                            "a=",
                                            ")",
                                            "<arg_key>",
                                            "</arg_key>",
                                            "<arg_value>",
                                            "</arg_value>",
                                            "<|channel|>",
                                            "<|message|>",
                                            "<|end|>",
                                            "to=functions.x",
                                            "call:",
                                            "<|tool_call>",
                                            "<|\"|>",
                                            "<invoke name=\"x\">",
                                            "<minimax:tool_call>",
                                            "<｜tool▁calls▁begin｜>",
                                            "<｜tool▁call▁begin｜>",
                                            "<｜tool▁sep｜>",
                                            "é"};
    std::mt19937 random(7);
    for (const std::string_view format : tool_format_names()) {
        const auto o = options_of(std::string(format));
        for (int trial = 0; trial < 40; ++trial) {
            std::string text;
            if (o.syntax.tools) text = o.syntax.tools->openers[0].text;
            for (int i = 0; i < 14; ++i) text += parts[random() % parts.size()];
            const Found whole = parse(text, o);
            for (int way = 0; way < 6; ++way) {
                std::vector<size_t> cuts;
                for (size_t i = 1; i < text.size(); ++i)
                    if (random() % 4 == 0) cuts.push_back(i);
                ASSERT_EQ(parse(text, o, cuts), whole) << format << ": " << text;
            }
        }
    }
}

TEST(OutputParser, DeepArgumentsAreBrokenOff) {
    const std::string deep(100000, '[');
    const Found f =
        parse("<tool_call>{\"name\": \"a\", \"arguments\": {\"x\": " + deep, options_of("hermes"));
    ASSERT_EQ(f.calls.size(), 1u);
    EXPECT_TRUE(Json::accept(f.calls[0].arguments));
}

}  // namespace
}  // namespace exl3::api
