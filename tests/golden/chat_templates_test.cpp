// Real chat templates against transformers' rendering (golden/chat-templates/README.md).
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "io/json.h"
#include "io/mapped_file.h"
#include "text/chat_template.h"

namespace exl3 {
namespace {

std::string decompressed(const std::string& file) {
    const std::string command = "xz -dc '" + file + "'";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string text(1 << 20, '\0');
    size_t size = 0;
    for (size_t n = 1; pipe && n > 0; size += n) {
        if (text.size() - size < (1 << 20)) text.resize(text.size() * 2);
        n = fread(text.data() + size, 1, text.size() - size, pipe.get());
    }
    text.resize(size);
    return text;
}

TEST(ChatTemplatesGolden, EveryTemplateRendersEveryScenarioAsTransformersDoes) {
    const std::string folder = std::string(EXL3_GOLDEN_DIR) + "/chat-templates";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden data";
    const std::string packed = folder + "/expected.json.xz";
    const Json expected = parse_json(decompressed(packed), packed).value();
    ASSERT_GT(expected["results"].size(), 5000u);

    std::map<std::string, Json> scenarios;
    const std::string file = folder + "/scenarios.json";
    const Json conversations = parse_json(read_file(file).value(), file).value();
    for (const Json& s : conversations) {
        Json request = s["vars"];
        request["date"] = "2026-01-15 12:34:56";
        request["continue_final_message"] = s["continue_final_message"];
        scenarios[s["id"].get<std::string>()] = request;
    }
    std::map<std::string, ChatTemplates> templates;
    for (const Json& r : expected["results"]) {
        const auto name = r["template"].get<std::string>();
        SCOPED_TRACE(name + ", " + r["scenario"].get<std::string>());
        if (!templates.count(name))
            templates[name] =
                ChatTemplates::load_file(folder + "/templates/" + name + ".jinja").value();
        Result<std::string> got =
            templates[name].apply(scenarios.at(r["scenario"].get<std::string>()));
        if (r.contains("output")) {
            ASSERT_TRUE(got) << got.error().what();
            EXPECT_EQ(*got, r["output"].get<std::string>());
        } else {
            ASSERT_FALSE(got) << *got;
            if (r["error"] == "raise_exception") {
                EXPECT_EQ(std::string(got.error().what()), r["message"].get<std::string>());
            }
        }
    }
}

}  // namespace
}  // namespace exl3
