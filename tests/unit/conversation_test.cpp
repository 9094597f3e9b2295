#include "gen/conversation.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace exl3 {
namespace {

std::string roles(const Conversation& c) {
    std::string all;
    for (const Json& m : c.messages()) {
        EXPECT_TRUE(m.is_object()) << m.dump();
        all += m.at("role").get<std::string>().substr(0, 1) + ":" +
               m.at("content").get<std::string>() + " ";
    }
    return all;
}

TEST(Conversation, InstructionsStandFirstAndOnce) {
    Conversation c;
    c.set_system("brief");
    EXPECT_EQ(roles(c), "s:brief ");
    c.add_user("hi");
    c.add_assistant("hello", "");
    c.set_system("long");
    EXPECT_EQ(roles(c), "s:long u:hi a:hello ");
    c.set_system("");
    EXPECT_EQ(roles(c), "u:hi a:hello ");
    c.set_system("new");
    EXPECT_EQ(roles(c), "s:new u:hi a:hello ");
    c.reset();
    EXPECT_EQ(roles(c), "s:new ");
    c.set_system("");
    c.reset();
    EXPECT_TRUE(c.empty());
}

TEST(Conversation, TheLastMessageIsDroppedByItsRole) {
    Conversation c;
    EXPECT_FALSE(c.drop_last("user"));
    c.add_user("a");
    EXPECT_FALSE(c.drop_last("assistant"));
    c.add_assistant("b", "because");
    EXPECT_EQ(c.messages()[1].at("reasoning_content"), "because");
    EXPECT_TRUE(c.drop_last("assistant"));
    EXPECT_TRUE(c.drop_last("user"));
    EXPECT_TRUE(c.empty());
}

TEST(Conversation, LoadsOnlyMessages) {
    Conversation c;
    c.add_user("kept");
    for (const char* bad : {R"({})", R"([1])", R"([{"role":"user"}])",
                            R"([{"role":5,"content":""}])", R"([["role","user"]])"})
        EXPECT_NE(test::error_of([&] { c.load(Json::parse(bad), "f.json"); }).find("f.json: "),
                  std::string::npos)
            << bad;
    EXPECT_EQ(roles(c), "u:kept ");
    c.load(Json::parse(R"([{"role":"system","content":"s"},{"role":"user","content":"u"}])"), "f");
    c.reset();
    EXPECT_EQ(roles(c), "s:s ");
}

}  // namespace
}  // namespace exl3
