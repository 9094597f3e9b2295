#include <fmt/format.h>

#include "api/fields.h"
#include "api/messages.h"
#include "api/request.h"

namespace exl3::api {
namespace {

// functions and function_call, the forerunners of tools.
Json tools_of_functions(const Json& functions) {
    Json tools = Json::array();
    for (const Json& f : functions) tools.push_back({{"type", "function"}, {"function", f}});
    return tools;
}

void read_logprobs(const Fields& f, OutputControls& c) {
    const Json* value = f.find({"logprobs"});
    const auto top = f.integer({"top_logprobs"}, 0, 20);
    if (value && value->is_number()) {
        // A number, as completions have it.
        c.top_logprobs = static_cast<int>(*f.integer({"logprobs"}, 0, 20));
        c.logprobs = true;
    } else if (value) {
        c.logprobs = *f.flag({"logprobs"});
    }
    if (!top) return;
    if (!c.logprobs && *top > 0)
        f.fail("top_logprobs", "found without logprobs, needed logprobs to be true");
    c.top_logprobs = static_cast<int>(*top);
}

void read_generation_prompt(const Fields& f, GenerationRequest& r) {
    const bool goes_on = f.flag({"continue_final_message"}).value_or(false);
    const auto add = f.flag({"add_generation_prompt"});
    if (goes_on) {
        if (add.value_or(false))
            f.fail("add_generation_prompt",
                   "found true, needed false: continue_final_message goes on in the last message");
        if (r.chat["messages"].back()["role"] != "assistant")
            f.fail("continue_final_message",
                   "found a last message that is not the assistant's, needed one to go on from");
    }
    r.chat["add_generation_prompt"] = add.value_or(!goes_on);
    r.chat["continue_final_message"] = goes_on;
}

void read_template(const Fields& f, const RequestDefaults& defaults, GenerationRequest& r) {
    r.template_name = f.text({"prompt_template"}).value_or("");
    const auto source = f.text({"chat_template"});
    if (!source) return;
    if (!defaults.inline_templates)
        f.fail("chat_template", "this server takes no templates from requests");
    r.template_source = *source;
}

}  // namespace

GenerationRequest read_chat(const Json& request, const RequestDefaults& defaults) {
    const Fields f(request, "");
    GenerationRequest r;
    read_stream_fields(request, r);
    r.output = read_controls(request, defaults);
    read_logprobs(f, r.output);
    if (const Json* modes = f.array({"modalities"}))
        for (const Json& mode : *modes)
            if (mode != "text") f.fail("modalities", "found more than text, needed text alone");

    r.chat = {{"messages", read_chat_messages(f.need_array("messages"), "messages")}};
    if (const Json* tools = f.array({"tools"})) {
        r.tools = read_tools(*tools, "tools");
    } else if (const Json* functions = f.array({"functions"})) {
        r.tools = read_tools(tools_of_functions(*functions), "functions");
        r.legacy_functions = true;
    }
    r.tool_choice = read_tool_choice(request, r.tools);
    add_template_vars(request, defaults, r.chat);
    read_generation_prompt(f, r);
    read_template(f, defaults, r);
    r.response_prefix = f.text({"response_prefix"}).value_or("");
    r.parse_reasoning = f.text({"reasoning_format"}).value_or("auto") != "none";
    return r;
}

}  // namespace exl3::api
