#include <gtest/gtest.h>

#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

TEST(Template, RendersARequestAsItIs) {
    const TempFolder folder;
    const std::string file =
        folder.write("t.jinja", "{{ messages[0].content }} {{ strftime_now('%d %b %Y') }}\n\n")
            .string();
    const std::string request =
        R"({"messages": [{"role": "user", "content": "h\u00e9"}], "date": "2026-01-15"})";
    const Finished f = exl3({"template", "--template", file, "--request", "-"}, request);
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, "h\xc3\xa9 15 Jan 2026\n");
    const std::string saved = folder.write("request.json", request).string();
    EXPECT_EQ(exl3({"template", "--template", file, "--request", saved}).out, f.out);
}

TEST(Template, TakesTheModelsTemplateAndTokens) {
    const TempFolder folder;
    folder.write("tokenizer_config.json",
                 R"({"bos_token": "<s>", "chat_template": "{{ bos_token }}{{ x }}"})");
    const std::string model = folder.path().string();
    EXPECT_EQ(exl3({"template", "-m", model, "--request", "-"}, R"({"x": 1.0})").out, "<s>1.0");
    const std::string file = folder.write("t.jinja", "{{ bos_token }}!").string();
    EXPECT_EQ(exl3({"template", "-m", model, "--template", file, "--request", "-"}, "{}").out,
              "<s>!");
}

TEST(Template, BatchAnswersEveryRequest) {
    const TempFolder folder;
    const std::string file = folder.write("t.jinja", "{{ x + 1 }}").string();
    const Finished f =
        exl3({"template", "--template", file, "--batch", "-"},
             R"([{"x": 1}, {"x": "a"}, {"template": "{{ raise_exception('n\u00f6') }}"},
                                {"template": "own"}])");
    ASSERT_EQ(f.status, 0) << f.err;
    const Json answers = f.json();
    ASSERT_EQ(answers.size(), 4u);
    EXPECT_EQ(answers[0], Json({{"prompt", "2"}}));
    EXPECT_EQ(answers[1]["error"].get<std::string>(),
              file + ": line 1, column 6: can only concatenate str (not \"int\") to str");
    EXPECT_EQ(answers[2], Json({{"error", "n\xc3\xb6"}}));
    EXPECT_EQ(answers[3], Json({{"prompt", "own"}}));
}

TEST(Template, FailuresAreOneLineAndUsageIsChecked) {
    const TempFolder folder;
    const std::string file = folder.write("t.jinja", "{{ raise_exception('no tools') }}").string();
    const Finished raised = exl3({"template", "--template", file, "--request", "-"}, "{}");
    EXPECT_EQ(raised.status, 1);
    EXPECT_EQ(raised.err, "error: no tools\n");
    EXPECT_EQ(exl3({"template", "--template", file + "x", "--request", "-"}, "{}").status, 1);
    EXPECT_EQ(exl3({"template", "--template", file, "--request", "-"}, "{").status, 1);
    EXPECT_EQ(exl3({"template", "--template", file, "--batch", "-"}, "{}").status, 1);
    EXPECT_EQ(exl3({"template", "--template", file}).status, 2);
    EXPECT_EQ(exl3({"template", "--request", "-"}, "{}").status, 2);
}

}  // namespace
}  // namespace exl3::test
