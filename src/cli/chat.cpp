// An interactive conversation.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "cli/input.h"
#include "cli/line_editor.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/sampler_flags.h"
#include "cli/signals.h"
#include "gen/complete.h"
#include "gen/conversation.h"
#include "gen/model_defaults.h"
#include "gen/reasoning.h"
#include "io/mapped_file.h"

namespace exl3::cli {
namespace {

constexpr const char* kHelp =
    "/help         this list\n"
    "/reset        forget the conversation\n"
    "/system TEXT  set the instructions; without TEXT: remove them\n"
    "/regen        answer the last message again\n"
    "/save FILE    write the conversation as JSON\n"
    "/load FILE    continue one\n"
    "/quit         leave, as ctrl-D does\n"
    "A line that ends in \\ goes on in the next one; \"\"\" alone on a line begins and ends a "
    "long\n"
    "message. Ctrl-C stops the answer or drops the line.\n";

struct ChatOptions {
    std::string model, template_file, system;
    int64_t context = 0, new_tokens = 0;
    SamplerFlags sampler;
    KvBits kv_bits;
    DeviceFlags device;
};

/// Prints an answer as it comes: reasoning dimmed on a terminal.
class AnswerPrinter {
public:
    explicit AnswerPrinter(bool colors) : colors_(colors) {}
    void show(const std::vector<ReasoningSplitter::Part>& parts) {
        for (const auto& part : parts) {
            if (colors_ && part.reasoning != dim_) print(part.reasoning ? "\x1b[2m" : "\x1b[0m");
            dim_ = part.reasoning;
            print(part.text);
            (part.reasoning ? reasoning : answer) += part.text;
        }
    }
    void end() {
        if (colors_ && dim_) print("\x1b[0m");
        print("\n");
    }
    std::string answer, reasoning;

private:
    bool colors_;
    bool dim_ = false;
};

class Chat {
public:
    explicit Chat(const ChatOptions& o)
        : o_(o),
          checkpoint_(Checkpoint::open(o.model)),
          tokenizer_(Tokenizer::load(o.model)),
          templates_(ChatTemplates::load(o.model, o.template_file).value()),
          sampler_(o.sampler.apply(default_params(checkpoint_.generation_config()),
                                   tokenizer_.vocab_size()),
                   sampler_vocab(tokenizer_)),
          ends_(end_tokens(checkpoint_.config(), checkpoint_.generation_config(), tokenizer_)),
          tags_(reasoning_tags(tokenizer_)),
          seed_(choose_seed(sampler_.params())) {
        if (templates_.empty())
            throw Error(Errc::unsupported, {o.model, {}, {}},
                        "found no chat template, needed one; give it with --template, or use "
                        "'exl3 run' to continue a text");
        conversation_.set_system(o.system);
        runtime_ = open_runtime(o.device);
        model_ = load_model(*runtime_.stream, checkpoint_);
        const int64_t context =
            o.context > 0 ? o.context : std::min(model_->spec().max_positions, 8192);
        warn_beyond_positions(model_->spec(), context);
        session_.emplace(*model_, *runtime_.stream,
                         SessionOptions{.max_tokens = context, .kv_bits = o_.kv_bits});
    }

    void talk() {
        if (lines_.interactive()) print("/help shows what there is besides talking.\n");
        bool one_line = true;
        for (std::string text; read_message(text, one_line);) {
            // A mistake ends its message, not the conversation.
            try {
                if (one_line && text.starts_with('/')) {
                    if (!command(text)) return;
                } else if (!text.empty()) {
                    conversation_.add_user(text);
                    answer();
                }
            } catch (const Error& e) {
                if (e.code() == Errc::cancelled || e.where().file == "stdout") throw;
                print_error(e.what());
            }
        }
    }

private:
    // One message, which may be several lines; a single line may be a command instead. False at the
    // end of input.
    bool read_message(std::string& text, bool& one_line) {
        text.clear();
        one_line = true;
        bool block = false, first = true;
        for (std::string line;;) {
            const auto status = lines_.read(text.empty() && !block ? "> " : ". ", line);
            if (status == LineEditor::Status::end) {
                if (lines_.interactive()) print("\n");
                return !text.empty();
            }
            if (status == LineEditor::Status::interrupted) {
                text.clear();
                block = false, first = one_line = true;
                continue;
            }
            if (line == "\"\"\"") {
                if (block) return true;
                block = true, one_line = false;
            } else if (block) {
                text += (first ? "" : "\n") + line;
                first = false;
            } else if (line.ends_with('\\')) {
                one_line = false;
                text += line.substr(0, line.size() - 1) + "\n";
            } else {
                text += line;
                return true;
            }
        }
    }

    // A line that begins with '/'. False: leave.
    bool command(const std::string& line) {
        const size_t space = line.find(' ');
        const std::string name = line.substr(0, space);
        const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
        if (name == "/quit" || name == "/exit") return false;
        if (name == "/help") {
            print(kHelp);
        } else if (name == "/reset") {
            conversation_.reset();
        } else if (name == "/system") {
            conversation_.set_system(rest);
        } else if (name == "/regen") {
            regenerate();
        } else if (name == "/save" && !rest.empty()) {
            write_file(rest, conversation_.messages().dump(2) + "\n");
            print_note("saved to " + rest);
        } else if (name == "/load" && !rest.empty()) {
            conversation_.load(read_json_input(rest), rest);
            print_note(fmt::format("{} messages from {}", conversation_.size(), rest));
        } else {
            print_note(
                fmt::format("'{}' is no command, or lacks its file; /help shows them", line));
        }
        return true;
    }

    void regenerate() {
        conversation_.drop_last("assistant");
        if (conversation_.messages().empty() ||
            conversation_.messages().back().at("role") != "user") {
            print_note("there is nothing to answer yet");
            return;
        }
        answer();
    }

    // Answers the last message. If that fails, the message is taken back.
    void answer() {
        try {
            const std::string prompt = conversation_.prompt(templates_);
            CompletionRequest request{.prompt = encode_rendered(tokenizer_, prompt),
                                      .stop = {.tokens = ends_},
                                      .seed = seed_++,
                                      .cancel = &stop_requested()};
            request.max_new_tokens = room_after(request.prompt.size());
            ReasoningSplitter splitter(tags_, prompt);
            AnswerPrinter printer(lines_.interactive());
            const Completion c =
                complete(*session_, tokenizer_, sampler_, request,
                         [&](std::string_view piece) { printer.show(splitter.push(piece)); });
            printer.show(splitter.finish());
            printer.end();
            conversation_.add_assistant(std::move(printer.answer), std::move(printer.reasoning));
            report(c);
        } catch (const Error&) {
            conversation_.drop_last("user");
            throw;
        }
        if (stop_requested() && !clear_stop()) check_stop();
    }

    int64_t room_after(size_t prompt) const {
        const int64_t left = session_->capacity() - static_cast<int64_t>(prompt);
        if (left < 1)
            throw Error(Errc::invalid_argument, {},
                        fmt::format("the conversation takes {} tokens, the context holds {}; "
                                    "/reset, or start with a larger --ctx",
                                    prompt, session_->capacity()));
        return o_.new_tokens > 0 ? std::min(left, o_.new_tokens) : left;
    }

    void report(const Completion& c) const {
        if (c.end == CompletionEnd::cancelled) print_note("(stopped)");
        if (c.end == CompletionEnd::max_new_tokens)
            print_note(fmt::format("(ended after {} tokens)", c.new_tokens));
        if (lines_.interactive())
            log(LogLevel::info, "[{} + {} tokens, {:.1f} tokens/s]", c.prompt_tokens, c.new_tokens,
                c.decode_tps());
    }

    const ChatOptions& o_;
    Checkpoint checkpoint_;
    Tokenizer tokenizer_;
    ChatTemplates templates_;
    Sampler sampler_;
    std::vector<int32_t> ends_;
    std::optional<ReasoningTags> tags_;
    uint64_t seed_;
    Runtime runtime_;
    std::unique_ptr<const Model> model_;
    std::optional<TextSession> session_;
    Conversation conversation_;
    LineEditor lines_;
};

}  // namespace

void add_chat(Command& command) {
    auto& o = command.options<ChatOptions>();
    add_model_flag(command, o.model);
    CLI::App& app = command.app;
    app.add_option("--template", o.template_file, "Use this chat template instead of the model's")
        ->type_name("FILE");
    app.add_option("--system", o.system, "Instructions before the first message")
        ->type_name("TEXT");
    app.add_option("--ctx", o.context, "Tokens the conversation may have (default: at most 8192)")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
    app.add_option("-n,--new-tokens", o.new_tokens, "Longest answer; 0: what the context holds")
        ->type_name("N")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
        ->capture_default_str();
    add_sampler_flags(command, o.sampler);
    add_kv_bits_flag(command, o.kv_bits);
    add_device_flags(command, o.device);
    command.run([&o] { Chat(o).talk(); });
}

}  // namespace exl3::cli
