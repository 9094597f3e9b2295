#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace exl3 {
namespace {

const Json kHello = {{"role", "user"}, {"content", "hello"}};

std::string prompt(const ChatTemplates& templates, const Json& request) {
    const Result<std::string> got = templates.apply(request);
    return got ? Result<std::string>(got).value() : "error: " + std::string(got.error().what());
}

TEST(ChatTemplates, TheFirstSourceOfADefaultWins) {
    const test::TempFolder folder;
    folder.write("tokenizer_config.json",
                 R"({"chat_template": "config {{ bos_token }}", "bos_token":
        {"content": "<s>"}, "eos_token": "</s>", "pad_token": null,
        "extra_special_tokens": {"image_token": "<image>"}, "additional_special_tokens": ["<a>"]})");
    EXPECT_EQ(prompt(ChatTemplates::load(folder.path()).value(), Json::object()), "config <s>");
    folder.write("chat_template.json", R"({"chat_template": "json"})");
    EXPECT_EQ(prompt(ChatTemplates::load(folder.path()).value(), Json::object()), "json");
    folder.write("chat_template.jinja",
                 "file {{ eos_token }} {{ image_token }} {{ pad_token is defined }}");
    EXPECT_EQ(prompt(ChatTemplates::load(folder.path()).value(), Json::object()),
              "file </s> <image> False");
    folder.write("own.jinja", "own {{ additional_special_tokens }}");
    EXPECT_EQ(prompt(ChatTemplates::load(folder.path(), folder.path() / "own.jinja").value(),
                     Json::object()),
              "own ['<a>']");
    // Without a model there are no special tokens, and a request's own come first.
    const auto file = ChatTemplates::load_file(folder.path() / "chat_template.jinja").value();
    EXPECT_EQ(prompt(file, {{"eos_token", "E"}}), "file E  False");
    const auto model = ChatTemplates::load(folder.path()).value();
    EXPECT_EQ(prompt(model, {{"eos_token", "E"}}), "file E <image> False");
}

TEST(ChatTemplates, NamedTemplatesAreChosenByNameAndByTools) {
    const test::TempFolder folder;
    folder.write("tokenizer_config.json",
                 R"({"chat_template": [{"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "tools"}, {"name": "rag", "template": "rag"}]})");
    const auto t = ChatTemplates::load(folder.path()).value();
    EXPECT_EQ(t.names(), (std::vector<std::string>{"default", "rag", "tool_use"}));
    EXPECT_EQ(prompt(t, {{"messages", {kHello}}}), "plain");
    EXPECT_EQ(prompt(t, {{"messages", {kHello}}, {"tools", nullptr}}), "plain");
    EXPECT_EQ(prompt(t, {{"messages", {kHello}}, {"tools", Json::array()}}), "tools");
    EXPECT_EQ(t.apply(Json::object(), "rag").value(), "rag");
    EXPECT_FALSE(t.apply(Json::object(), "other"));
    std::filesystem::create_directory(folder / "additional_chat_templates");
    folder.write("additional_chat_templates/rag.jinja", "better rag");
    EXPECT_EQ(ChatTemplates::load(folder.path()).value().apply(Json::object(), "rag").value(),
              "better rag");
}

TEST(ChatTemplates, WhatIsMissingOrBrokenIsSaid) {
    const test::TempFolder folder;
    const auto none = ChatTemplates::load(folder.path()).value();
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(prompt(none, {{"messages", {kHello}}}), "error: the model has no chat template");
    EXPECT_FALSE(ChatTemplates::load(folder.path() / "absent"));
    EXPECT_FALSE(ChatTemplates::load(folder.path(), folder.path() / "absent.jinja"));
    folder.write("chat_template.jinja", "a\n{{ b");
    const auto broken = ChatTemplates::load(folder.path()).value();
    EXPECT_NE(prompt(broken, Json::object()).find("chat_template.jinja: line 2, column 5:"),
              std::string::npos);
    folder.write("chat_template.jinja", "");
    folder.write("tokenizer_config.json", "[1]");
    EXPECT_FALSE(ChatTemplates::load(folder.path()));
    folder.write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": 3})");
    EXPECT_EQ(prompt(ChatTemplates::load(folder.path()).value(), Json::object()), "");
    std::filesystem::remove(folder.path() / "chat_template.jinja");
    EXPECT_FALSE(ChatTemplates::load(folder.path()));
    EXPECT_EQ(prompt(none, Json::array()), "error: request: found array, needed an object");
}

TEST(ChatTemplates, MessagesBringTheVariablesOfTransformers) {
    const Json request = {
        {"template",
         "{{ tools is defined }}{{ tools is none }}{{ documents is none }}"
         "{{ add_generation_prompt }}{{ date is defined }}{{ template is defined }}"
         "{{ strftime_now('%d.%m.%Y') }}"},
        {"date", "2026-01-15"},
        {"messages", {kHello}}};
    EXPECT_EQ(render_request({}, request).value(), "TrueTrueTrueFalseFalseFalse15.01.2026");
    EXPECT_FALSE(render_request({}, {{"template", ""}, {"date", "soon"}}));
    EXPECT_FALSE(render_request({}, {{"template", 1}}));
}

TEST(ChatTemplates, ContinuesTheFinalMessage) {
    const auto continued = [](const std::string& source, const Json& content) {
        const Json request = {
            {"template", source},
            {"continue_final_message", true},
            {"messages", {kHello, {{"role", "assistant"}, {"content", content}}}}};
        const Result<std::string> got = render_request({}, request);
        return got ? Result<std::string>(got).value() : "error: " + std::string(got.error().what());
    };
    const std::string plain = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
    EXPECT_EQ(continued(plain, "so far "), "[hello][so far ");
    const std::string trimming = "{% for m in messages %}[{{ m.content|trim }}]{% endfor %}";
    EXPECT_EQ(continued(trimming, "so far "), "[hello][so far");
    const std::string parts = "{% for p in messages[-1].content %}<{{ p.text }}>{% endfor %}";
    EXPECT_EQ(continued(parts, {{{"type", "text"}, {"text", "a"}},
                                {{"type", "text"}, {"text", "b"}},
                                {{"type", "image"}}}),
              "<a><b");
    EXPECT_EQ(continued("nothing", "so far").rfind("error: continue_final_message: ", 0), 0u);
    EXPECT_EQ(continued(plain, nullptr).rfind("error: continue_final_message: ", 0), 0u);
    EXPECT_FALSE(render_request({}, {{"template", plain},
                                     {"messages", {kHello}},
                                     {"add_generation_prompt", true},
                                     {"continue_final_message", true}}));
}

TEST(ChatTemplates, BatchesAnswerOneByOne) {
    const Json answers = render_requests({}, {{{"template", "{{ x }}"}, {"x", 1}},
                                              {{"template", "{{ raise_exception('no') }}"}},
                                              {{"template", "{{"}},
                                              3})
                             .value();
    EXPECT_EQ(answers[0], Json({{"prompt", "1"}}));
    EXPECT_EQ(answers[1], Json({{"error", "no"}}));
    EXPECT_EQ(answers[2]["error"].get<std::string>().rfind("template: line 1, column 3: ", 0), 0u);
    EXPECT_TRUE(answers[3].contains("error"));
    EXPECT_FALSE(render_requests({}, Json::object()));
}

TEST(ChatTemplates, BosIsNeverDoubled) {
    EXPECT_TRUE(needs_bos("hello", "<s>"));
    EXPECT_FALSE(needs_bos("<s>hello", "<s>"));
    EXPECT_FALSE(needs_bos("hello", ""));
}

}  // namespace
}  // namespace exl3
