#include "io/config.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>

#include "support/temp_folder.h"

namespace exl3 {
namespace {

using test::error_of;

HfConfig config(std::string_view text) {
    return HfConfig::parse(text, "c.json").value();
}

TEST(Config, ReadsEveryType) {
    const auto c = config(R"({"b":true,"i":7,"n":-3,"big":9007199254740993,"f":1.5,"s":"x",
                              "o":{"p":{"q":2}},"l":[1,2.0,3]})");
    EXPECT_TRUE(c.get<bool>("b"));
    EXPECT_EQ(c.get<int>("i"), 7);
    EXPECT_EQ(c.get<int>("n"), -3);
    EXPECT_EQ(c.get<int64_t>("big"), 9007199254740993);
    EXPECT_EQ(c.get<float>("f"), 1.5f);
    EXPECT_EQ(c.get<double>("f"), 1.5);
    EXPECT_EQ(c.get<std::string>("s"), "x");
    EXPECT_EQ(c.get<int>("o.p.q"), 2);
    EXPECT_EQ(c.list<int>("l"), (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(c.list<double>("l"), (std::vector<double>{1, 2, 3}));
}

TEST(Config, IntegersPassForFloatsAndWholeFloatsForIntegers) {
    const auto c = config(R"({"theta":1000000,"heads":32.0,"exp":1e3,"max":2147483647,
        "min":-2147483648,"fmax":2147483647.0,"fmin":-2147483648.0})");
    EXPECT_EQ(c.get<float>("theta"), 1e6f);
    EXPECT_EQ(c.get<double>("theta"), 1e6);
    EXPECT_EQ(c.get<int>("heads"), 32);
    EXPECT_EQ(c.get<int64_t>("exp"), 1000);
    EXPECT_EQ(c.get<int>("max"), INT_MAX);
    EXPECT_EQ(c.get<int>("min"), INT_MIN);
    EXPECT_EQ(c.get<int>("fmax"), INT_MAX);
    EXPECT_EQ(c.get<int>("fmin"), INT_MIN);
}

TEST(Config, MissingAndNullAreTheSame) {
    const auto c = config(R"({"null":null,"o":{"null":null}})");
    for (const char* path : {"null", "no", "o.null", "o.no", "no.no", "null.no"}) {
        EXPECT_FALSE(c.has(path)) << path;
        EXPECT_EQ(c.get<int>(path, 5), 5) << path;
        EXPECT_EQ(c.get<std::string>(path, "d"), "d") << path;
        EXPECT_TRUE(c.list<int>(path).empty()) << path;
        EXPECT_FALSE(c.child(path)) << path;
        EXPECT_EQ(
            error_of([&] { c.get<int>(path); }),
            std::string("c.json: key '") + path + "': found nothing, needed an integer of 32 bits");
    }
}

TEST(Config, TheFirstSpellingThatIsPresentWins) {
    const auto c = config(R"({"n_head":null,"heads":8,"num_heads":9})");
    EXPECT_EQ(c.find<int>({"n_head", "heads", "num_heads"}), 8);
    EXPECT_EQ(c.find<int>({"x", "y"}), std::nullopt);
    EXPECT_NE(error_of([&] {
                  c.find<bool>({"x", "heads"});
              }).find("key 'heads'"),
              std::string::npos);
}

TEST(Config, AValueOfTheWrongTypeIsNamedWithWhatWasNeeded) {
    const auto c = config(R"({"t":true,"i":7,"h":1.5,"s":"7","l":[1],"o":{"x":1},"neg":-2147483649,
        "big":2147483648,"fbig":2147483648.0,"huge":1e300,"u64":9223372036854775808,"f63":9223372036854775808.0,
        "zero":0,"mixed":[1,"2"],"nulls":[1,null],"fraction":[1,2.5]})");
    const auto expect = [&](auto call, const std::string& says) {
        EXPECT_EQ(error_of(call), "c.json: key " + says);
    };
    expect([&] { c.get<int>("t"); }, "'t': found true, needed an integer of 32 bits");
    expect([&] { c.get<int>("s"); }, "'s': found the string \"7\", needed an integer of 32 bits");
    expect([&] { c.get<int>("h"); }, "'h': found 1.5, needed an integer of 32 bits");
    expect([&] { c.get<int>("l"); }, "'l': found a list of 1, needed an integer of 32 bits");
    expect([&] { c.get<int>("o"); }, "'o': found an object, needed an integer of 32 bits");
    expect([&] { c.get<int>("big"); }, "'big': found 2147483648, needed an integer of 32 bits");
    expect([&] { c.get<int>("neg"); }, "'neg': found -2147483649, needed an integer of 32 bits");
    expect([&] { c.get<int>("fbig"); }, "'fbig': found 2147483648.0, needed an integer of 32 bits");
    expect([&] { c.get<int64_t>("huge"); }, "'huge': found 1e+300, needed an integer of 64 bits");
    expect([&] { c.get<int64_t>("u64"); },
           "'u64': found 9223372036854775808, needed an integer of 64 bits");
    expect([&] { c.get<int64_t>("f63"); },
           "'f63': found 9.223372036854776e+18, needed an integer of 64 bits");
    expect([&] { c.get<float>("huge"); },
           "'huge': found 1e+300, needed a number within the range of a float");
    expect([&] { c.get<float>("s"); },
           "'s': found the string \"7\", needed a number within the range of a float");
    expect([&] { c.get<double>("t"); }, "'t': found true, needed a number");
    expect([&] { c.get<bool>("zero"); }, "'zero': found 0, needed true or false");
    expect([&] { c.get<std::string>("i"); }, "'i': found 7, needed a string");
    expect([&] { c.get<int>("t", 4); }, "'t': found true, needed an integer of 32 bits");
    expect([&] { c.list<int>("i"); }, "'i': found 7, needed a list");
    expect([&] { c.list<int>("mixed"); },
           "'mixed[1]': found the string \"2\", needed an integer of 32 bits");
    expect([&] { c.list<double>("nulls"); }, "'nulls[1]': found null, needed a number");
    expect([&] { c.list<int>("fraction"); },
           "'fraction[1]': found 2.5, needed an integer of 32 bits");
    expect([&] { c.child("l"); }, "'l': found a list of 1, needed an object");
    expect([&] { c.get<int>("i.x"); }, "'i': found 7, needed an object");
    expect([&] { c.has("o.x.y"); }, "'o.x': found 1, needed an object");
    expect([&] { c.fail("o.x", "found 1, needed more"); }, "'o.x': found 1, needed more");
}

TEST(Config, ChildrenNameTheFullPath) {
    const auto c = config(R"({"text_config":{"rope":{"type":5}}})");
    const auto rope = c.child("text_config")->child("rope");
    ASSERT_TRUE(rope);
    EXPECT_EQ(rope->get<int>("type"), 5);
    EXPECT_EQ(error_of([&] { rope->get<std::string>("type"); }),
              "c.json: key 'text_config.rope.type': found 5, needed a string");
    EXPECT_EQ(error_of([&] { c.child("text_config")->get<int>("rope.x"); }),
              "c.json: key 'text_config.rope.x': found nothing, needed an integer of 32 bits");
}

TEST(Config, KnowsWhatHasNotBeenRead) {
    const auto c = config(R"({"a":1,"b":{"c":2,"d":{"e":3}},"f":[1,{"g":2}],"h":null,"i":4})");
    EXPECT_EQ(c.unread(), (std::vector<std::string>{"a", "b.c", "b.d.e", "f", "i"}));
    c.get<int>("a");
    c.child("b")->child("d")->get<int>("e");
    c.has("i");
    EXPECT_EQ(c.unread(), (std::vector<std::string>{"b.c", "f"}));
    EXPECT_EQ(c.child("b")->unread(), (std::vector<std::string>{"c"}));
    const HfConfig copy = c;
    copy.is_list("f");
    EXPECT_EQ(c.unread(), (std::vector<std::string>{"b.c"}));
}

TEST(Config, InfinitiesAsPythonWritesThem) {
    // The state space models have "time_step_limit": [0.0, Infinity]; newer writers use an object.
    for (
        const char* text :
        {R"({"l":[0.0, Infinity],"x":-Infinity,"s":"\"Infinity \\","n":1})",
         R"({"l":[0.0,{"__float__":"Infinity"}],"x":{"__float__":"-Infinity"},"s":"\"Infinity \\","n":1})"}) {
        const auto c = config(text);
        EXPECT_EQ(c.list<double>("l"), (std::vector<double>{0, INFINITY}));
        EXPECT_EQ(c.get<float>("x"), -INFINITY);
        EXPECT_EQ(c.get<std::string>("s"), "\"Infinity \\");
        EXPECT_NE(error_of([&] { c.get<int>("x"); }), "");
        EXPECT_EQ(c.unread(), (std::vector<std::string>{"n"}));
    }
    for (const char* text :
         {R"({"x":NaN})", R"({"x":Infinity,})", R"({Infinity:1})", R"({"x":--Infinity})",
          R"({"x":1Infinity})", R"({"x":{"__float__":"NaN"}})"}) {
        const auto r = HfConfig::parse(text, "c.json");
        if (r)
            EXPECT_NE(error_of([&, c = r] {
                          auto k = c;
                          k->get<double>("x");
                      }),
                      "")
                << text;
        else
            EXPECT_NE(std::string_view(r.error().what()).find("c.json: at byte "),
                      std::string_view::npos)
                << text;
    }
}

TEST(Config, ArchitectureIsExactlyOneName) {
    EXPECT_EQ(config(R"({"architectures":["LlamaForCausalLM"]})").architecture(),
              "LlamaForCausalLM");
    for (const char* bad : {R"({})", R"({"architectures":[]})", R"({"architectures":["A","B"]})",
                            R"({"architectures":"A"})", R"({"architectures":[1]})"})
        EXPECT_TRUE(
            error_of([&] { config(bad).architecture(); }).starts_with("c.json: key 'architectures"))
            << bad;
}

TEST(Config, EndOfAnswerTokensAreTheUnionWithoutRepeats) {
    const auto ids = [](const char* model, const char* generation) {
        return eos_token_ids(config(model),
                             generation ? std::optional(config(generation)) : std::nullopt);
    };
    using Ids = std::vector<int>;
    EXPECT_EQ(ids("{}", nullptr), Ids{});
    EXPECT_EQ(ids(R"({"eos_token_id":2})", nullptr), Ids{2});
    EXPECT_EQ(ids(R"({"eos_token_id":[5,2,5]})", R"({"eos_token_id":[2,7]})"), (Ids{5, 2, 7}));
    EXPECT_EQ(ids(R"({"text_config":{"eos_token_id":3}})", "{}"), Ids{3});
    EXPECT_EQ(ids(R"({"eos_token_id":1,"text_config":{"eos_token_id":3}})", "{}"), Ids{1});
    EXPECT_EQ(ids(R"({"eos_token_id":null,"text_config":{"eos_token_id":[3]}})",
                  R"({"eos_token_id":null})"),
              Ids{3});
    EXPECT_EQ(error_of([&] { ids(R"({"eos_token_id":"x"})", nullptr); }),
              "c.json: key 'eos_token_id': found the string \"x\", needed an integer of 32 bits");
}

TEST(Config, FilesThatAreNoObjectOrNotThere) {
    EXPECT_STREQ(HfConfig::parse("[1]", "c.json").error().what(),
                 "c.json: found a list of 1, needed an object");
    EXPECT_STREQ(HfConfig::parse("", "c.json").error().where().file.c_str(), "c.json");
    const test::TempFolder folder;
    EXPECT_EQ(HfConfig::load(folder / "no.json").error().what(),
              (folder / "no.json").string() + ": cannot open: No such file or directory");
    EXPECT_EQ(HfConfig::load(folder.write("c.json", "{\"a\":1}")).value().get<int>("a"), 1);
}

TEST(Config, ALongValueIsCutInTheMessage) {
    const auto c = config("{\"s\":\"" + std::string(10'000, 'x') + "\"}");
    EXPECT_LT(error_of([&] { c.get<int>("s"); }).size(), 200u);
}

}  // namespace
}  // namespace exl3
