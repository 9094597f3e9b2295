#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/json.h"

namespace exl3 {

/// A moment without a time zone, as strftime_now formats it.
struct CivilTime {
    int year = 1970;
    int month = 1;  ///< 1 to 12
    int day = 1;    ///< 1 to 31
    int hour = 0;
    int minute = 0;
    int second = 0;
    int microsecond = 0;

    /// "2026-01-15", with an optional " 12:34:56" or "T12:34:56". A date alone stands for
    /// 12:34:56 of that day, the moment of the reference renderings.
    static Result<CivilTime> parse(std::string_view text);
    static CivilTime local_now();
};

/// What a rendering sees and may use. A template is a program from outside: with these limits it
/// ends soon and in bounded memory, whatever it says. Passing one is an Error like any other.
struct RenderOptions {
    std::optional<CivilTime> now;     ///< for strftime_now; the local time if absent
    uint64_t max_steps = 20'000'000;  ///< expressions evaluated, items visited, 64 bytes read
    size_t max_output_bytes = size_t{64} << 20;
    size_t max_memory_bytes = size_t{256} << 20;  ///< of the values alive at one time
    int max_depth = 3000;  ///< nested evaluations, about 10 for each macro call
};

/// A parsed template of the Jinja language, in the dialect of Hugging Face chat templates: Jinja2
/// in its immutable sandbox with trim_blocks and lstrip_blocks, loop controls and the generation
/// tag. Immutable once parsed: any number of threads may render one template.
class JinjaTemplate {
public:
    /// `name` stands in front of error messages. Fails with "NAME: line 3, column 7: ..." when the
    /// source is not a template.
    static Result<JinjaTemplate> parse(std::string_view source, std::string name);

    /// Renders with the members of the object `vars` as variables. A template that calls
    /// raise_exception yields an Error whose text is exactly the template's message; every other
    /// failure names the template, line and column.
    Result<std::string> render(const Json& vars, const RenderOptions& options = {}) const;

    /// The names that the template takes from its variables, sorted: messages, enable_thinking...
    std::vector<std::string> free_variables() const;
    /// The source, line ends normalised to '\n'.
    const std::string& source() const;
    const std::string& name() const;

    struct Impl;

private:
    explicit JinjaTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<const Impl> impl_;
};

}  // namespace exl3
