#pragma once
#include <memory>
#include <string>

namespace exl3::cli {

/// Reads lines that a user types: with editing and a history on a terminal, plainly from a pipe or
/// a dumb terminal.
class LineEditor {
public:
    enum class Status { line, end, interrupted };

    LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;
    ~LineEditor();

    /// True where lines are edited.
    bool interactive() const { return state_ != nullptr; }
    /// Reads one line into `line`, without its end. `interrupted`: ctrl-C, the line is dropped. The
    /// prompt is shown on any terminal, a dumb one too, and not in a pipe.
    Status read(const std::string& prompt, std::string& line);

private:
    void show_plain(const std::string& prompt) const;
    Status read_plain(std::string& line);
    struct State;
    std::unique_ptr<State> state_;
    bool terminal_ = false;
    std::string pending_;  // read from a pipe, not yet handed out
    bool ended_ = false;
};

}  // namespace exl3::cli
