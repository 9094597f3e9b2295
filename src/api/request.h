#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/error.h"
#include "sample/params.h"

namespace exl3::api {

/// What the server brings to the reading of every request.
struct RequestDefaults {
    SamplerParams sampler;                       ///< where the request names no value
    int vocab = 0;                               ///< token ids must be below; 0: not checked
    int max_choices = 128;                       ///< largest n
    size_t max_stop_strings = 64;                ///< stop and banned strings, each
    Json template_vars = Json::object();         ///< variables the request may override
    Json template_vars_forced = Json::object();  ///< variables it may not
    bool inline_templates = false;               ///< a request may bring a template of its own
};

/// A function the model may call.
struct ToolSpec {
    std::string name;
    std::string description;
    Json parameters = Json::object();  ///< JSON schema of the arguments
    bool strict = false;               ///< arguments must follow the schema
    bool custom = false;               ///< takes one text, not an object
};

/// Whether and which tools are to be called.
struct ToolChoice {
    enum class Mode { none, automatic, required } mode = Mode::automatic;
    std::string name;      ///< with `required`: this one; empty: any
    bool parallel = true;  ///< more than one call in an answer
};

/// A shape the output must have; the generator's constraint is built from it.
struct OutputFormat {
    enum class Kind { json_object, json_schema, regex, grammar, choice, structural_tag } kind;
    std::string param;  ///< the request field that asked for it, for errors
    Json value;         ///< the schema; otherwise text, or a list of texts for `choice`
    bool strict = false;
};

/// Everything about sampling and ending an answer that the protocols share.
struct OutputControls {
    SamplerParams sampler;
    std::optional<int64_t> max_tokens;  ///< absent: what the context holds
    int64_t min_tokens = 0;
    std::vector<std::string> stop;
    std::vector<int32_t> stop_tokens;
    bool keep_stop = false;    ///< the stop string stays in the text
    bool ignore_eos = false;   ///< end tokens are banned
    bool skip_special = true;  ///< special tokens give no text
    bool add_bos = true;
    std::vector<std::string> banned_strings;
    bool token_healing = false;
    int priority = 0;
    int n = 1;                                ///< answers per prompt
    bool logprobs = false;                    ///< of the tokens of the answer
    int top_logprobs = 0;                     ///< and of so many alternatives
    std::optional<int64_t> reasoning_budget;  ///< tokens of reasoning; absent: no limit
    std::string reasoning_budget_message;
    std::optional<OutputFormat> format;
};

/// A request to generate, whatever protocol it came by.
struct GenerationRequest {
    std::string model;  ///< as the client wrote it; empty: the loaded one
    OutputControls output;
    bool stream = false;
    bool include_usage = false;     ///< of a stream, in a chunk at its end
    bool continuous_usage = false;  ///< in every chunk

    /// Of a completion. Each is a text or token ids.
    std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
    bool echo = false;   ///< the prompt comes before the text
    int best_of = 1;     ///< answers made, of which the n likeliest are given
    std::string suffix;  ///< text after the gap that is to be filled

    /// Of a conversation: what the chat template is rendered with (messages, variables).
    Json chat = Json();
    std::string response_prefix;  ///< begins the answer; not part of the output
    std::string template_name;    ///< one of the model's templates; empty: the default one
    std::string template_source;  ///< a template of the request's own
    std::vector<ToolSpec> tools;
    ToolChoice tool_choice;
    bool parse_reasoning = true;
    bool legacy_functions = false;  ///< answered with function_call

    /// Fields of the request that its reply repeats (Responses).
    Json echoed = Json::object();
};

/// Reads the fields that all generating routes have in common: sampler knobs under all their
/// names, limits, stops, penalties, structured output. Throws ApiError naming the field.
OutputControls read_controls(const Json& request, const RequestDefaults& defaults);
/// model, stream and stream_options.
void read_stream_fields(const Json& request, GenerationRequest& out);

/// POST /v1/completions
GenerationRequest read_completion(const Json& request, const RequestDefaults& defaults);
/// POST /v1/chat/completions
GenerationRequest read_chat(const Json& request, const RequestDefaults& defaults);
/// POST /v1/responses. @param earlier  the conversation that previous_response_id names, as chat
/// messages; empty if none
GenerationRequest read_responses(const Json& request, const RequestDefaults& defaults,
                                 const Json& earlier);
/// POST /v1/messages and its count_tokens
GenerationRequest read_messages(const Json& request, const RequestDefaults& defaults);

}  // namespace exl3::api
