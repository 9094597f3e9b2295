// How real chat templates write tool calls, found by rendering them.
#include "api/template_traits.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace exl3::api {
namespace {

const std::filesystem::path kTemplates =
    std::filesystem::path(EXL3_GOLDEN_DIR) / "chat-templates" / "templates";

TemplateTraits traits_of(const std::string& name) {
    const ChatTemplates templates =
        ChatTemplates::load_file(kTemplates / (name + ".jinja")).value();
    return probe_template(templates, templates.select(true).value(), [&](std::string_view text) {
        // Of this vocabulary nothing but its call tag matters here.
        return name == "LFM2" && text == "<|tool_call_start|>";
    });
}

struct Expected {
    const char* file;
    const char* format;
    const char* think;
};

void PrintTo(const Expected& e, std::ostream* out) {
    *out << e.file;
}

class RealTemplates : public testing::TestWithParam<Expected> {};

TEST_P(RealTemplates, TellTheirFormat) {
    if (!std::filesystem::exists(kTemplates)) GTEST_SKIP() << "no " << kTemplates;
    const Expected& e = GetParam();
    const TemplateTraits t = traits_of(e.file);
    EXPECT_EQ(t.output.harmony ? "harmony" : t.output.tools->name, std::string_view(e.format));
    EXPECT_EQ(t.output.think_open, e.think);
    EXPECT_TRUE(t.messages.tools);
}

INSTANTIATE_TEST_SUITE_P(
    All, RealTemplates,
    testing::Values(
        Expected{"Qwen-Qwen3-0.6B", "hermes", "<think>"},
        Expected{"Qwen-Qwen2.5-7B-Instruct", "hermes", ""},
        Expected{"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes", ""},
        Expected{"Qwen3-Coder-30B-original", "qwen3_coder", ""},
        Expected{"GLM-4.5", "glm4_5", "<think>"}, Expected{"Kimi-K2-Instruct", "kimi_k2", ""},
        Expected{"MiniMax-M2", "minimax_m2", "<think>"}, Expected{"DeepSeek-V3", "deepseek_v3", ""},
        Expected{"Mistral-Small-3.2-24B-Instruct-2506", "mistral", ""},
        Expected{"meta-llama-Llama-3.1-8B-Instruct", "llama3_json", ""},
        Expected{"openai-gpt-oss-120b", "harmony", ""},
        Expected{"deepseek-ai-DeepSeek-V3.1", "deepseek_v3", "<think>"},
        Expected{"deepseek-ai-DeepSeek-V4", "deepseek_v4", "<think>"},
        Expected{"google-gemma-4-31B-it", "gemma4", ""},
        Expected{"mistralai-Mistral-Nemo-Instruct-2407", "mistral", ""},
        Expected{"moonshotai-Kimi-K2", "kimi_k2", ""},
        Expected{"ibm-granite-granite-4.0", "hermes", ""}, Expected{"LFM2", "lfm2", ""}));

// Whatever a template does with the probes, the traits are usable.
TEST(RealTemplates, AllCanBeProbed) {
    if (!std::filesystem::exists(kTemplates)) GTEST_SKIP() << "no " << kTemplates;
    int probed = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kTemplates)) {
        const auto templates = ChatTemplates::load_file(entry.path());
        if (!templates) continue;
        auto copy = templates;
        auto jinja = copy->select(true);
        if (!jinja) continue;
        const TemplateTraits t =
            probe_template(*copy, *jinja, [](std::string_view) { return false; });
        EXPECT_TRUE(t.output.harmony || t.output.tools) << entry.path();
        EXPECT_FALSE(t.before_name.empty() && t.after_name.empty()) << entry.path();
        ++probed;
    }
    EXPECT_GT(probed, 100);
}

}  // namespace
}  // namespace exl3::api
