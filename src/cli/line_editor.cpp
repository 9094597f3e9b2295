#include "cli/line_editor.h"

#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <string_view>

#include "cli/signals.h"

#ifdef EXL3_LIBEDIT
#include <histedit.h>
#endif

namespace exl3::cli {

#ifdef EXL3_LIBEDIT

struct LineEditor::State {
    EditLine* edit = nullptr;
    History* history = nullptr;
    std::string prompt;
    bool interrupted = false;

    State() {
        // libedit counts columns of multibyte characters by the locale. Where none is set, as in
        // containers, what is typed is UTF-8 all the same.
        if (!std::setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
        edit = el_init("exl3", stdin, stdout, stderr);
        history = history_init();
        HistEvent event;
        ::history(history, &event, H_SETSIZE, 1000);
        el_set(edit, EL_CLIENTDATA, this);
        el_set(edit, EL_PROMPT, &State::show_prompt);
        el_set(edit, EL_EDITOR, "emacs");
        el_set(edit, EL_HIST, ::history, history);
        el_set(edit, EL_GETCFN, &State::read_character);
        // While a line is edited, ctrl-C is a key that drops it rather than a signal.
        el_set(edit, EL_ADDFN, "exl3-drop-line", "drops the line", &State::drop_line);
        el_set(edit, EL_BIND, "^C", "exl3-drop-line", nullptr);
        el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        history_end(history);
        el_end(edit);
    }
    static State& of(EditLine* edit) {
        void* state = nullptr;
        el_get(edit, EL_CLIENTDATA, &state);
        return *static_cast<State*>(state);
    }
    static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }
    // In place of libedit's own reader, which waits on after a signal.
    static int read_character(EditLine* edit, wchar_t* out) {
        std::mbstate_t shift{};
        for (;;) {
            if (stop_requested()) {
                if (!clear_stop()) return -1;  // SIGTERM
                // A ctrl-C that came before the terminal stopped making signals of it.
                of(edit).interrupted = true;
                *out = L'\r';
                return 1;
            }
            char byte = 0;
            const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return static_cast<int>(n);
            const size_t used = std::mbrtowc(out, &byte, 1, &shift);
            if (used == static_cast<size_t>(-2)) continue;  // the character goes on
            if (used == static_cast<size_t>(-1)) *out = static_cast<unsigned char>(byte);
            return 1;
        }
    }
    static unsigned char drop_line(EditLine* edit, int) {
        of(edit).interrupted = true;
        return CC_NEWLINE;
    }
};

LineEditor::LineEditor() {
    const char* terminal = std::getenv("TERM");
    terminal_ = ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO);
    if (terminal_ && terminal && std::string_view(terminal) != "dumb")
        state_ = std::make_unique<State>();
}

LineEditor::Status LineEditor::read(const std::string& prompt, std::string& line) {
    if (!state_) {
        show_plain(prompt);
        return read_plain(line);
    }
    state_->prompt = prompt;
    state_->interrupted = false;
    int count = 0;
    const char* text = el_gets(state_->edit, &count);
    if (state_->interrupted) {
        std::fputs("^C\n", stdout);
        std::fflush(stdout);
        el_reset(state_->edit);
        return Status::interrupted;
    }
    check_stop();
    if (!text || count <= 0) return Status::end;
    line.assign(text, static_cast<size_t>(count));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    HistEvent event;
    if (!line.empty()) ::history(state_->history, &event, H_ENTER, line.c_str());
    return Status::line;
}

#else

struct LineEditor::State {};

LineEditor::LineEditor() : terminal_(::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) {}

LineEditor::Status LineEditor::read(const std::string& prompt, std::string& line) {
    show_plain(prompt);
    return read_plain(line);
}

#endif

LineEditor::~LineEditor() = default;

void LineEditor::show_plain(const std::string& prompt) const {
    if (!terminal_) return;
    std::fputs(prompt.c_str(), stdout);
    std::fflush(stdout);
}

LineEditor::Status LineEditor::read_plain(std::string& line) {
    for (;;) {
        const size_t end = pending_.find('\n');
        if (end != std::string::npos || (ended_ && !pending_.empty())) {
            line = pending_.substr(0, end);
            pending_.erase(0, end == std::string::npos ? end : end + 1);
            if (!line.empty() && line.back() == '\r') line.pop_back();
            return Status::line;
        }
        if (ended_) return Status::end;
        char block[4096];
        const ssize_t n = ::read(STDIN_FILENO, block, sizeof block);
        if (n > 0) {
            pending_.append(block, static_cast<size_t>(n));
        } else if (n == 0 || errno != EINTR) {
            ended_ = true;
        } else {
            check_stop();
        }
    }
}

}  // namespace exl3::cli
