#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace exl3::cli {

/// How far a long piece of work is, on stderr: a bar that redraws itself on a terminal, otherwise a
/// line every ten seconds. Silent below log level info. Work that ends within a second shows
/// nothing. Updating also throws Error{cancelled} once the user asked to stop.
class Progress {
public:
    explicit Progress(std::string label);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void update(int64_t done, int64_t total);

private:
    using Clock = std::chrono::steady_clock;
    void clear();
    std::string label_;
    bool terminal_;
    bool drawn_ = false;
    Clock::time_point begin_, last_;
};

}  // namespace exl3::cli
