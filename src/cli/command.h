#pragma once
#include <CLI/CLI.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace exl3::cli {

/// One command of the program while its options are described. A command is a file of its own with
/// a function `void add_NAME(Command&)` and a line in commands.def; that function declares options
/// on `app` and says what to run. Work starts only after the whole command line was understood.
class Command {
public:
    explicit Command(CLI::App& parser) : app(parser) {}
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    /// Storage for the command's options, alive until the program ends.
    template <typename Options>
    Options& options() {
        auto made = std::make_shared<Options>();
        Options& o = *made;
        storage_ = std::move(made);
        return o;
    }
    /// What the command does. It throws Error when it cannot.
    void run(std::function<void()> work) { work_ = std::move(work); }
    /// A command below this one (`eval ppl`); this one then has no work of its own.
    Command& add(const std::string& name, const std::string& help) {
        app.require_subcommand(1);
        return below_.emplace_back(*app.add_subcommand(name, help));
    }

    std::deque<Command>& below() { return below_; }
    /// The work of the innermost command that the command line named.
    const std::function<void()>& chosen() const {
        for (const Command& c : below_)
            if (c.app.parsed()) return c.chosen();
        return work_;
    }

    CLI::App& app;

private:
    std::shared_ptr<void> storage_;
    std::function<void()> work_;
    std::deque<Command> below_;
};

}  // namespace exl3::cli
