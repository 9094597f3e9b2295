// Any bytes as a template: an Error that says where, or text, within tight limits.
#include <string>

#include "text/jinja.h"

namespace {

exl3::Json variables() {
    return {
        {"messages",
         {{{"role", "system"}, {"content", "Be br\xc3\xa9ve."}},
          {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "<think>\n a</think> b"}}}}},
          {{"role", "assistant"}, {"content", nullptr}, {"n", 2}}}},
        {"tools", nullptr},
        {"add_generation_prompt", true},
        {"bos_token", "<s>"},
        {"s", "a,b \xf0\x9f\x98\x80 C"},
        {"n", 3},
        {"f", 2.5},
        {"big", 18446744073709551615u},
        {"l", {3, 1, 2}},
        {"d", {{"a", 1}, {"items", {1, 2}}}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;
    if (size > 4096) return 0;  // longer ones say nothing new and parse slowly here
    static const Json vars = variables();
    RenderOptions options;
    options.now = CivilTime{.year = 2026};
    options.max_steps = 20'000;
    options.max_output_bytes = 100'000;
    options.max_memory_bytes = 2'000'000;
    const std::string_view source(reinterpret_cast<const char*>(data), size);
    Result<JinjaTemplate> parsed = JinjaTemplate::parse(source, "t");
    if (!parsed) {
        EXL3_CHECK(std::string_view(parsed.error().what()).starts_with("t: "));
        return 0;
    }
    const Result<std::string> first = parsed->render(vars, options);
    const Result<std::string> again = parsed->render(vars, options);
    EXL3_CHECK(first.has_value() == again.has_value());
    if (first) EXL3_CHECK(Result<std::string>(first).value() == Result<std::string>(again).value());
    return 0;
}
