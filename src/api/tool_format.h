#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/request.h"
#include "api/scan.h"

namespace exl3::api {

/// Receives the calls found in an answer. Once a call was started it is a call, whatever follows.
class CallSink {
public:
    virtual ~CallSink() = default;
    /// @param id  what the model wrote as id of the call; empty if nothing
    virtual void start(const std::string& name, const std::string& id) = 0;
    /// The next piece of the arguments, which together are one JSON value.
    virtual void arguments(std::string_view json) = 0;
    virtual void end() = 0;
};

/// Types that the tools of a request declare, for formats whose values are plain text.
class ArgumentTypes {
public:
    ArgumentTypes() = default;
    explicit ArgumentTypes(const std::vector<ToolSpec>& tools);
    /// The JSON that a plain value stands for: text where the schema says string; otherwise what it
    /// is as JSON, and text if it is none.
    std::string value(const std::string& tool, const std::string& key,
                      const std::string& text) const;

private:
    bool is_text(const std::string& tool, const std::string& key) const;
    std::map<std::string, Json> schemas_;
};

/// Reads what follows an opener (or a bare beginning), to the end of the section. Throws Unparsable
/// when the text turns out to be no call.
using Section = Parse<void> (*)(TextFeed& in, CallSink& out, const ArgumentTypes& types);

/// One way of writing tool calls.
struct ToolFormat {
    struct Opener {
        std::string text;           ///< begins a section
        Section section = nullptr;  ///< if it is read by another parser than the format's
    };
    std::string_view name;
    std::vector<Opener> openers;
    /// Without an opener, an answer that begins with this byte is a section; 0: none does.
    char bare = 0;
    Section section = nullptr;
    /// All of these are found near a call in a rendered prompt of the format.
    std::vector<std::string> marks;
};

/// The format of that name ("hermes", "qwen3_coder", "glm4_5", "mistral", "llama3_json", ...), also
/// under the names other servers give it; nullptr if there is none. "harmony" is not among them:
/// there the channels of the whole answer are parsed.
const ToolFormat* find_tool_format(std::string_view name);
/// The format whose marks are in `call`, a call as some template writes it; nullptr if none fits.
const ToolFormat* recognize_tool_format(std::string_view call);
/// Names of all formats.
std::vector<std::string_view> tool_format_names();

// Sections, each in the file that its kind has.
Parse<void> tool_call_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> bare_function_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> json_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> bare_json_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> mistral_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> deepseek_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> kimi_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> minimax_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> dsml_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> hunyuan_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> pythonic_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);
Parse<void> gemma_section(TextFeed& in, CallSink& out, const ArgumentTypes& types);

/// A JSON object that names a function and has its arguments, in any order and wording.
/// @param bare  no tag says that it is a call: an object without arguments is none
Parse<void> read_call_object(TextFeed& in, CallSink& out, bool bare);
/// Arguments as a JSON value, between start() and end(), which it calls.
Parse<void> read_call_arguments(TextFeed& in, CallSink& out, const std::string& name,
                                const std::string& id);

}  // namespace exl3::api
