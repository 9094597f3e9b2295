// Small templates against Python's Jinja2 (golden/jinja/README.md).
#include "text/jinja.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/json.h"
#include "io/mapped_file.h"

namespace exl3 {
namespace {

TEST(JinjaGolden, EveryCaseRendersAsInPython) {
    const std::string file = std::string(EXL3_GOLDEN_DIR) + "/jinja/cases.json";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no golden data";
    const Json cases = parse_json(read_file(file).value(), file).value();
    ASSERT_GT(cases.size(), 400u);
    RenderOptions options;
    options.now = CivilTime::parse("2026-01-15 12:34:56").value();
    for (const Json& c : cases) {
        SCOPED_TRACE(c["id"].get<std::string>() + ": " + c["template"].get<std::string>());
        const Json vars = c.contains("context") ? c["context"] : Json::object();
        Result<JinjaTemplate> parsed =
            JinjaTemplate::parse(c["template"].get<std::string>(), "case");
        Result<std::string> got = parsed ? parsed->render(vars, options) : parsed.error();
        if (c.contains("output")) {
            ASSERT_TRUE(got) << got.error().what();
            EXPECT_EQ(*got, c["output"].get<std::string>());
        } else {
            ASSERT_FALSE(got) << *got;
            const std::string message = got.error().what();
            if (c["error"] == "raise_exception") {
                EXPECT_EQ(message, c["message"].get<std::string>());
            } else {
                EXPECT_EQ(message.rfind("case: line 1, column ", 0), 0u) << message;
            }
        }
    }
}

}  // namespace
}  // namespace exl3
