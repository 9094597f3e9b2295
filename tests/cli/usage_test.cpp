// What every command has in common: exit statuses, one-line errors, where output goes.
#include <algorithm>
#include <chrono>
#include <thread>

#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

int lines(const std::string& text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Usage, VersionAndHelpSucceedOnStdout) {
    const Finished version = exl3({"--version"});
    EXPECT_EQ(version.status, 0);
    EXPECT_NE(version.out.find("exl3 "), std::string::npos);
    EXPECT_NE(version.out.find("commit"), std::string::npos);
    EXPECT_NE(version.out.find("backends"), std::string::npos);
    EXPECT_EQ(version.err, "");

    const Finished help = exl3({"--help"});
    EXPECT_EQ(help.status, 0);
    std::vector<std::string> names = {
#define EXL3_COMMAND(name, text) #name,
#include "cli/commands.def"
#undef EXL3_COMMAND
    };
    for (std::string& name : names) {
        std::replace(name.begin(), name.end(), '_', '-');
        EXPECT_NE(help.out.find("\n  " + name), std::string::npos) << name;
        const Finished own = exl3({name, "--help"});
        EXPECT_EQ(own.status, 0) << name;
        EXPECT_NE(own.out.find("Usage: exl3 " + name), std::string::npos) << own.out;
    }
}

TEST(Usage, MistakesExitWith2AndOneLine) {
    const std::vector<std::vector<std::string>> cases = {
        {},
        {"no-such-command"},
        {"inspect"},
        {"inspect", tales(), "--no-such-flag"},
        {"inspect", tales(), "--device", "gpu"},
        {"inspect", tales(), "--threads", "-1"},
        {"inspect", tales(), "--log-level", "loud"},
        {"logits", "-m", tales(), "--ids", "-"},
        {"logits", "-m", tales(), "--ids", "-", "-o", "x", "--chunk", "0"},
        {"logits", "-m", tales(), "--ids", "-", "-o", "x", "--kv-bits", "1"},
        {"tokenize", "-m", tales()},
        {"tokenize", "-m", tales(), "--text", "a", "--batch", "b"},
        {"detokenize", "-m", tales(), "--ids", "a", "--batch", "b"},
        {"eval"},
        {"eval", "ppl", "-m", tales()},
        {"eval", "ppl", "-m", tales(), "--text", "x", "--convention", "other"},
    };
    for (const auto& args : cases) {
        const Finished f = exl3(args);
        const std::string name = args.empty() ? "(none)" : args.back();
        EXPECT_EQ(f.status, 2) << name;
        EXPECT_EQ(f.out, "") << name;
        EXPECT_EQ(f.err.rfind("error: ", 0), 0u) << name << ": " << f.err;
        EXPECT_EQ(lines(f.err), 1) << f.err;
    }
}

TEST(Usage, WorkThatFailsExitsWith1AndNamesThePath) {
    const TempFolder folder;
    folder.write("config.json", R"({"architectures": ["MadeUpForCausalLM"]})");
    const std::string file = tales() + "/config.json";
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
        {{"inspect", "/no/such/folder"}, "/no/such/folder"},
        {{"inspect", file}, file},
        {{"inspect", folder.path().string()}, folder.path().string()},
        {{"logits", "-m", tales(), "--ids", "/no/ids.json", "-o", "/tmp/x"}, "/no/ids.json"},
        {{"logits", "-m", tales(), "--ids", file, "-o", "/tmp/x"}, file},
        {{"tokenize", "-m", "/no/model", "--text", "x"}, "/no/model"},
        {{"tokenize", "-m", tales(), "--text-file", tales()}, tales()},
        {{"eval", "ppl", "-m", tales(), "--text", "/no/text"}, "/no/text"},
        {{"inspect", tales(), "--check", "--device", "cuda:7"}, "cuda:7"},
    };
    for (const auto& [args, needle] : cases) {
        const Finished f = exl3(args);
        EXPECT_EQ(f.status, 1) << needle;
        EXPECT_EQ(f.out, "") << needle;
        EXPECT_EQ(f.err.rfind("error: ", 0), 0u) << f.err;
        EXPECT_NE(f.err.find(needle), std::string::npos) << f.err;
        EXPECT_EQ(lines(f.err), 1) << f.err;
    }
}

TEST(Usage, AClosedStdoutIsAnErrorNotASilentDeath) {
    Program p({"tokenize", "-m", tales(), "--text-file", "-"});
    p.close_output();
    p.write("Once upon a time");
    const Finished f = p.finish();
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find("error: stdout: cannot write"), std::string::npos) << f.err;
}

TEST(Usage, InterruptedWhileWaitingForInputExitsWith130) {
    for (const int number : {SIGINT, SIGTERM}) {
        Program p({"tokenize", "-m", tales(), "--text-file", "-"});
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        p.signal(number);
        // Input stays open: only the signal can end it.
        const Finished f = p.finish(/*end_input=*/false);
        EXPECT_EQ(f.status, 130);
        EXPECT_EQ(f.err, "interrupted\n");
    }
}

}  // namespace
}  // namespace exl3::test
