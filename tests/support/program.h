#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "io/json.h"

namespace exl3::test {

/// What a run of the program left behind.
struct Finished {
    int status = -1;  ///< exit status; -1: killed by a signal
    std::string out, err;
    Json json() const { return parse_json(out, "stdout").value(); }
};

/// A run of the built exl3 with pipes for its three streams.
class Program {
public:
    explicit Program(const std::vector<std::string>& args) {
        int in[2], out[2], err[2];
        EXL3_CHECK(::pipe(in) == 0 && ::pipe(out) == 0 && ::pipe(err) == 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(in[0], 0);
            ::dup2(out[1], 1);
            ::dup2(err[1], 2);
            for (const int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) ::close(fd);
            std::vector<char*> argv = {const_cast<char*>(EXL3_PROGRAM)};
            for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
            argv.push_back(nullptr);
            ::execv(EXL3_PROGRAM, argv.data());
            ::_exit(127);
        }
        ::close(in[0]);
        ::close(out[1]);
        ::close(err[1]);
        in_ = in[1];
        out_ = out[0];
        err_ = err[0];
        ::fcntl(in_, F_SETFD, FD_CLOEXEC);
        ::signal(SIGPIPE, SIG_IGN);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() {
        close_input();
        close_output();
        if (err_ >= 0) ::close(err_);
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    void write(std::string_view text) {
        while (!text.empty()) {
            const ssize_t n = ::write(in_, text.data(), text.size());
            if (n <= 0) return;
            text.remove_prefix(static_cast<size_t>(n));
        }
    }
    void close_input() {
        if (in_ >= 0) ::close(in_);
        in_ = -1;
    }
    void close_output() {
        if (out_ >= 0) ::close(out_);
        out_ = -1;
    }
    void signal(int number) { ::kill(pid_, number); }
    /// Waits until stdout holds at least `bytes`; returns what it holds.
    const std::string& wait_for_output(size_t bytes) {
        while (result_.out.size() < bytes && pump()) {
        }
        return result_.out;
    }
    /// Reads both outputs to their ends and waits for the program.
    /// @param end_input  closes its stdin first, as most programs wait for that
    Finished finish(bool end_input = true) {
        if (end_input) close_input();
        while (pump()) {
        }
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return result_;
    }

private:
    // Takes what has arrived; false once both streams have ended.
    bool pump() {
        pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
        if (out_ < 0 && err_ < 0) return false;
        ::poll(fds, 2, 60000);
        take(fds[0], out_, result_.out);
        take(fds[1], err_, result_.err);
        return out_ >= 0 || err_ >= 0;
    }
    static void take(const pollfd& p, int& fd, std::string& into) {
        if (fd < 0 || p.revents == 0) return;
        char block[4096];
        const ssize_t n = ::read(fd, block, sizeof block);
        if (n > 0) {
            into.append(block, static_cast<size_t>(n));
        } else {
            ::close(fd);
            fd = -1;
        }
    }
    pid_t pid_ = -1;
    int in_ = -1, out_ = -1, err_ = -1;
    Finished result_;
};

/// Runs exl3 with arguments and a text on stdin.
inline Finished exl3(const std::vector<std::string>& args, const std::string& input = {}) {
    Program p(args);
    p.write(input);
    return p.finish();
}

/// The small model that is part of the repository.
inline std::string tales() {
    return std::string(EXL3_SOURCE_DIR) + "/models/tales-9m";
}

}  // namespace exl3::test
