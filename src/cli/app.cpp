#include "cli/app.h"

#include <fmt/format.h>
#include <algorithm>

#include <new>

#include "backends/backends.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cpu/cpu.h"
#include "exl3_version.h"

namespace exl3::cli {

#define EXL3_COMMAND(name, help) void add_##name(Command&);
#include "cli/commands.def"
#undef EXL3_COMMAND

namespace {

enum Exit { done = 0, failed = 1, wrong_usage = 2, interrupted = 130 };

std::string version() {
    return fmt::format("exl3 {} (commit {})\nbackends: {}{}cpu, ref\ncpu: {}", EXL3_VERSION,
                       EXL3_COMMIT, gpu_backend(), gpu_backend().empty() ? "" : ", ",
                       cpu::name_of(cpu::best_isa()));
}

void add_log_level(Command& command) {
    if (command.below().empty()) add_log_level_flag(command);
    for (Command& c : command.below()) add_log_level(c);
}

// "import_gguf", as C++ names it, to "import-gguf".
std::string as_typed(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

void add_commands(Command& program) {
#define EXL3_COMMAND(name, help) add_##name(program.add(as_typed(#name), help));
#include "cli/commands.def"
#undef EXL3_COMMAND
    add_log_level(program);
}

// The deepest command that was named, whose help answers a mistake in its options.
const CLI::App& named_command(const CLI::App& app) {
    const auto below = app.get_subcommands();
    return below.empty() ? app : named_command(*below.front());
}

// The words of CLI11 are kept; the one line is ours.
int report_usage(const CLI::App& app, const CLI::ParseError& e) {
    std::string path;
    for (const CLI::App* a = &named_command(app); a; a = a->get_parent())
        path = path.empty() ? a->get_name() : a->get_name() + " " + path;
    print_error(fmt::format("{} (see {} --help)", e.what(), path));
    return wrong_usage;
}

int report_failure() {
    try {
        throw;
    } catch (const Error& e) {
        if (e.code() == Errc::cancelled) {
            print_note("interrupted");
            return interrupted;
        }
        print_error(e.what());
    } catch (const std::bad_alloc&) {
        print_error("memory: the system gave no more, needed more than it has free");
    } catch (const std::exception& e) {
        print_error(e.what());
    }
    return failed;
}

}  // namespace

int run_program(int argc, const char* const* argv) {
    catch_signals();
    CLI::App app("Runs, makes and measures language models in the EXL3 format", "exl3");
    Command program(app);
    try {
        app.set_version_flag("--version", version);
        add_commands(program);
        app.parse(argc, argv);
        program.chosen()();
        return done;
    } catch (const CLI::CallForHelp&) {
        return guard_output([&] { print(app.help()); }) ? done : failed;
    } catch (const CLI::CallForVersion& e) {
        return guard_output([&] { print(e.what() + std::string("\n")); }) ? done : failed;
    } catch (const CLI::ParseError& e) {
        return report_usage(app, e);
    } catch (...) {
        return report_failure();
    }
}

}  // namespace exl3::cli
