#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/tool_format.h"

namespace exl3::api {

/// A piece of an answer.
struct OutputEvent {
    enum class Kind { reasoning, content, call_start, call_arguments, call_end } kind;
    std::string text;  ///< of reasoning and content, and the next piece of a call's arguments
    int call = 0;      ///< which call, from 0
    std::string name;  ///< of call_start
    std::string id;    ///< of call_start: unique, "call_..." unless the model wrote one
};

/// How the answers of a model are written. Found once per model (template_traits.h).
struct OutputSyntax {
    bool harmony = false;                 ///< channels (gpt-oss); the rest is then unused
    std::string think_open, think_close;  ///< both empty: no reasoning
    const ToolFormat* tools = nullptr;    ///< nullptr: calls are not looked for
    bool tools_in_reasoning = true;       ///< calls inside reasoning are calls
    std::vector<std::string> hidden;      ///< texts left out of content: special tokens
};

struct OutputParserOptions {
    OutputSyntax syntax;
    std::vector<ToolSpec> tools;           ///< of the request; its calls need no type but theirs
    bool starts_in_reasoning = false;      ///< the prompt ends inside a reasoning tag
    size_t max_calls = 1024;               ///< later ones are left out; 1: no parallel calls
    std::function<std::string()> make_id;  ///< ids for calls; by default make_call_id()
};

/// Tells reasoning, content and tool calls apart in text that arrives in pieces. However the text
/// is cut, the events add up to the same. Arguments are always whole JSON values: what the model
/// left open is closed. Text that only looked like a call comes back as content.
class OutputParser {
public:
    explicit OutputParser(OutputParserOptions options);
    ~OutputParser();
    OutputParser(OutputParser&&) noexcept;
    OutputParser& operator=(OutputParser&&) = delete;

    /// Events that are certain now. Neighbours of one kind are joined.
    std::vector<OutputEvent> push(std::string_view text);
    /// No more text comes. Must be called once, last.
    std::vector<OutputEvent> finish();
    int calls() const;          ///< started so far
    bool in_reasoning() const;  ///< what comes next is reasoning

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// "call_" and 24 hexadecimal digits, random.
std::string make_call_id();
/// `prefix` and 24 hexadecimal digits, random.
std::string make_id(std::string_view prefix);

/// Whether a prompt ends inside reasoning: an opening tag after the last closing one, and hardly
/// anything behind it.
bool ends_in_reasoning(std::string_view prompt, const OutputSyntax& syntax);

}  // namespace exl3::api
