#include <poll.h>
#include <pty.h>

#include <chrono>

#include "gen/reasoning.h"
#include "support/golden.h"
#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {
namespace {

// Messages stand one after the other, so that a base model has something to continue.
constexpr const char* kTemplate =
    "{%- for m in messages -%}{{ m.content + ('' if m.role == 'user' else '\\n') }}{%- endfor -%}";

std::vector<std::string> chat_args(const TempFolder& folder,
                                   const std::vector<std::string>& more = {}, int answer = 8) {
    std::vector<std::string> args = {"chat", "-m", tales(), "--greedy", "--template"};
    args.push_back(folder.write("t.jinja", kTemplate).string());
    args.insert(args.end(), {"-n", std::to_string(answer)});
    args.insert(args.end(), more.begin(), more.end());
    return args;
}

TEST(Chat, AnswersLinesFromAPipe) {
    const TempFolder folder;
    const std::string saved = (folder / "saved.json").string();
    const Finished f =
        exl3(chat_args(folder), "Once upon a time\n/regen\n/save " + saved + "\nThe fox\\\nran\n");
    ASSERT_EQ(f.status, 0) << f.err;
    const std::string answer =
        exl3({"run", "-m", tales(), "-p", "Once upon a time", "-n", "8", "--greedy"}).out;
    EXPECT_EQ(f.out.rfind(answer + "\n" + answer + "\n", 0), 0u) << f.out;
    const Json messages = load_json(saved);
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_EQ(messages[0].at("content"), "Once upon a time");
    EXPECT_EQ(messages[1].at("content"), answer);

    // The second turn read only what was new, and says what a fresh reading of all of it says.
    const std::string prompt = "Once upon a time" + answer + "\nThe fox\nran";
    const std::string second =
        exl3({"run", "-m", tales(), "-p", prompt, "-n", "8", "--greedy"}).out;
    EXPECT_EQ(f.out, answer + "\n" + answer + "\n" + second + "\n");
    const Finished loaded = exl3(chat_args(folder), "/load " + saved + "\nThe fox\\\nran\n");
    EXPECT_EQ(loaded.out, second + "\n");
}

TEST(Chat, InstructionsAndLongMessagesReachTheModel) {
    const TempFolder folder;
    const std::string saved = (folder / "saved.json").string();
    const Finished f =
        exl3(chat_args(folder, {"--system", "Old."}),
             "/system Be brief.\n\"\"\"\n\n/quit is\nno command here\n\"\"\"\n/save " + saved +
                 "\n/reset\nagain\n/save " + saved + ".2\n");
    ASSERT_EQ(f.status, 0) << f.err;
    const Json messages = load_json(saved), after = load_json(saved + ".2");
    ASSERT_EQ(messages.size(), 3u) << messages.dump();
    EXPECT_EQ(messages[0].at("role"), "system");
    EXPECT_EQ(messages[0].at("content"), "Be brief.");
    EXPECT_EQ(messages[1].at("content"), "\n/quit is\nno command here");
    ASSERT_EQ(after.size(), 3u) << after.dump();
    EXPECT_EQ(after[0].at("content"), "Be brief.");
    EXPECT_EQ(after[1].at("content"), "again");
}

TEST(Chat, MistakesDoNotEndIt) {
    const TempFolder folder;
    const Finished f =
        exl3(chat_args(folder), "/nonsense\n/load /no/such/file\n/regen\n/system\nOnce upon\n");
    EXPECT_EQ(f.status, 0);
    EXPECT_NE(f.err.find("/nonsense"), std::string::npos);
    EXPECT_NE(f.err.find("error: /no/such/file"), std::string::npos);
    EXPECT_NE(f.err.find("nothing to answer"), std::string::npos);
    EXPECT_FALSE(f.out.empty());
    const Finished full = exl3(chat_args(folder, {"--ctx", "4"}), "Once upon a time\nOnce\n");
    EXPECT_EQ(full.status, 0);
    EXPECT_NE(full.err.find("the context holds 4"), std::string::npos) << full.err;
}

TEST(Chat, NeedsATemplate) {
    const Finished f = exl3({"chat", "-m", tales()});
    EXPECT_EQ(f.status, 1);
    EXPECT_NE(f.err.find("no chat template"), std::string::npos) << f.err;
}

// Types into a terminal and waits until it shows `want` after what it showed before.
class Terminal {
public:
    explicit Terminal(const std::vector<std::string>& args) {
        pid_ = ::forkpty(&fd_, nullptr, nullptr, nullptr);
        if (pid_ != 0) return;
        ::setenv("TERM", "xterm", 1);
        std::vector<char*> argv = {const_cast<char*>(EXL3_PROGRAM)};
        for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
        argv.push_back(nullptr);
        ::execv(EXL3_PROGRAM, argv.data());
        ::_exit(127);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    ~Terminal() {
        ::close(fd_);
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }
    void type(std::string_view keys) {
        EXPECT_EQ(::write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
    }
    bool shows(const std::string& want) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        for (;;) {
            const size_t at = screen_.find(want, seen_);
            if (at != std::string::npos) {
                seen_ = at + want.size();
                return true;
            }
            pollfd p{fd_, POLLIN, 0};
            char block[4096];
            if (std::chrono::steady_clock::now() > end || ::poll(&p, 1, 30000) <= 0) return false;
            const ssize_t n = ::read(fd_, block, sizeof block);
            if (n <= 0) return false;
            screen_.append(block, static_cast<size_t>(n));
        }
    }
    int finish() {
        while (shows("\x01never")) {
        }
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    const std::string& screen() const { return screen_; }

private:
    int fd_ = -1;
    pid_t pid_ = -1;
    std::string screen_;
    size_t seen_ = 0;
};

TEST(Chat, OnATerminalCtrlCStopsTheAnswerNotTheProgram) {
    const TempFolder folder;
    Terminal t(chat_args(folder, {"--logit-bias", "0=-inf"}, 0));
    ASSERT_TRUE(t.shows("> ")) << t.screen();
    if (t.screen().find("/help shows") == std::string::npos)
        GTEST_SKIP() << "built without libedit";
    t.type("Once upon a time\r");
    ASSERT_TRUE(t.shows("time")) << t.screen();
    ASSERT_TRUE(t.shows(".")) << t.screen();  // the answer has begun
    t.type("\x03");
    ASSERT_TRUE(t.shows("(stopped)")) << t.screen();
    ASSERT_TRUE(t.shows("> ")) << t.screen();
    t.type("half a line\x03");  // ctrl-C at the prompt drops the line
    ASSERT_TRUE(t.shows("> ")) << t.screen();
    t.type("/help\r");
    ASSERT_TRUE(t.shows("/reset")) << t.screen();
    t.type("/quit\r");
    EXPECT_EQ(t.finish(), 0) << t.screen();
}

std::string shown(const std::vector<ReasoningSplitter::Part>& parts) {
    std::string all;
    for (const auto& p : parts)
        all += (p.reasoning ? "[" : "(") + p.text + (p.reasoning ? "]" : ")");
    return all;
}

TEST(Reasoning, IsToldFromTheAnswerWhereverPiecesAreCut) {
    const ReasoningTags tags{"<think>", "</think>"};
    ReasoningSplitter whole(tags, "prompt");
    EXPECT_EQ(shown(whole.push("a<think>b</think>c")), "(a)[b](c)");
    ReasoningSplitter bytes(tags, "prompt");
    std::string text, thought;
    for (const char c : std::string("a<think>b<</think>c<th")) {
        for (const auto& p : bytes.push(std::string(1, c)))
            (p.reasoning ? thought : text) += p.text;
    }
    for (const auto& p : bytes.finish()) (p.reasoning ? thought : text) += p.text;
    EXPECT_EQ(text, "ac<th");
    EXPECT_EQ(thought, "b<");

    ReasoningSplitter begun(tags, "assistant\n<think>\n");
    EXPECT_EQ(shown(begun.push("b</think>c")), "[b](c)");
    ReasoningSplitter none(std::nullopt, "x<think>");
    EXPECT_EQ(shown(none.push("<think>b")), "(<think>b)");
}

}  // namespace
}  // namespace exl3::test
