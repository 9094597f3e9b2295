#pragma once

namespace exl3::cli {

/// The program: parses the command line and runs the command it names.
/// @return the exit status: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted
int run_program(int argc, const char* const* argv);

}  // namespace exl3::cli
