#include "text/jinja.h"

#include <fmt/format.h>

#include <new>

#include "text/jinja_interp.h"
#include "text/jinja_lexer.h"
#include "text/jinja_parser.h"
#include "text/jinja_scope.h"
#include "text/jinja_unicode.h"

namespace exl3 {

struct JinjaTemplate::Impl {
    std::string name;
    std::string source;
    jinja::Tree tree;
};

namespace {

constexpr size_t kMaxSource = size_t{4} << 20;  // bytes; the longest known template has 0.1 MB

Error to_error(const std::string& name, const jinja::Failure& failure, Errc code) {
    if (failure.fault == jinja::Fault::raised) return Error(code, {}, failure.message);
    if (failure.fault == jinja::Fault::unsupported) code = Errc::unsupported;
    if (failure.at.line == 0) return Error(code, {name, {}, {}}, failure.message);
    return Error(
        code, {name, {}, {}},
        fmt::format("line {}, column {}: {}", failure.at.line, failure.at.column, failure.message));
}

}  // namespace

Result<JinjaTemplate> JinjaTemplate::parse(std::string_view source, std::string name) {
    if (source.size() > kMaxSource)
        return Error(Errc::invalid_file, {name, {}, {}},
                     fmt::format("found a template of {} bytes, needed at most {}", source.size(),
                                 kMaxSource));
    if (!text::is_valid_utf8(source))
        return Error(Errc::invalid_file, {name, {}, {}}, "found text that is not UTF-8");
    auto impl = std::make_shared<Impl>();
    impl->name = std::move(name);
    impl->source = jinja::normalized_source(source);
    try {
        jinja::parse(impl->source, impl->tree);
        jinja::bind_variables(impl->tree);
    } catch (const jinja::Failure& failure) {
        return to_error(impl->name, failure, Errc::invalid_file);
    }
    return JinjaTemplate(std::move(impl));
}

Result<std::string> JinjaTemplate::render(const Json& vars, const RenderOptions& options) const {
    if (!vars.is_object())
        return Error(Errc::invalid_argument, {impl_->name, {}, {}},
                     fmt::format("found variables of type {}, needed an object", vars.type_name()));
    jinja::Runtime rt(options);
    try {
        std::string text = jinja::Interpreter(rt, impl_->tree, vars).run();
        if (!text::is_valid_utf8(text))
            rt.fail(jinja::Fault::value, "the output has half a surrogate pair");
        return text;
    } catch (jinja::Failure& failure) {
        if (failure.at.line == 0) failure.at = rt.at;
        return to_error(impl_->name, failure, Errc::invalid_argument);
    } catch (const jinja::MemoryExhausted&) {
        const std::string message =
            fmt::format("the template needs more than {} bytes", options.max_memory_bytes);
        return to_error(impl_->name, {jinja::Fault::limit, message, rt.at}, Errc::invalid_argument);
    } catch (const std::bad_alloc&) {
        return Error(Errc::out_of_memory, {impl_->name, {}, {}}, "out of memory while rendering");
    }
}

std::vector<std::string> JinjaTemplate::free_variables() const {
    return impl_->tree.free_names;
}
const std::string& JinjaTemplate::source() const {
    return impl_->source;
}
const std::string& JinjaTemplate::name() const {
    return impl_->name;
}

}  // namespace exl3
