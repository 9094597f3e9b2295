#pragma once
#include <atomic>

namespace exl3::cli {

/// From now on ctrl-C and SIGTERM set stop_requested(), a second one ends the program at once with
/// status 130, and a closed pipe is an error of the write that met it instead of a silent death.
void catch_signals();

/// Set once the user asked to stop; handed to work in lower layers as its cancel flag.
const std::atomic<bool>& stop_requested();

/// Throws Error{cancelled} once the user asked to stop. For loops and progress callbacks.
void check_stop();

/// Takes back a ctrl-C that has been answered, for programs that go on after one. False, and
/// nothing is taken back, if the request was a SIGTERM.
bool clear_stop();

}  // namespace exl3::cli
