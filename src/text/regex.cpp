#include "text/regex.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "text/regex_syntax.h"
#include "text/unicode.h"

namespace exl3::text {
namespace {

// Steps of one search. Tokenizer expressions need a few per character of the match they find; the
// limit stops an expression that backtracks without end after seconds, not hours.
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKiB = 256 * 1024;
constexpr size_t kJitStackStart = size_t{32} << 10;
constexpr size_t kJitStackLimit = size_t{64} << 20;

// What a thread needs to match: results for the whole match only, limits, a stack that can grow.
struct Scratch {
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr);
    Scratch() {
        pcre2_set_match_limit(context, kMatchLimit);
        pcre2_set_heap_limit(context, kHeapLimitKiB);
        pcre2_jit_stack_assign(context, nullptr, stack);
    }
    ~Scratch() {
        pcre2_jit_stack_free(stack);
        pcre2_match_context_free(context);
        pcre2_match_data_free(data);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
};

Scratch& scratch() {
    thread_local Scratch s;
    return s;
}

std::string message(int code) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(code, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Code {
    std::string source;
    pcre2_code* code = nullptr;
    bool jit = false;

    Code(std::string_view source_pattern, const std::string& pattern, uint32_t options)
        : source(source_pattern) {
        pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        int error = 0;
        size_t at = 0;
        code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             options | PCRE2_UTF, &error, &at, context);
        pcre2_compile_context_free(context);
        if (!code)
            throw Error(Errc::unsupported, {},
                        fmt::format("regular expression '{}': {}", source, message(error)));
        jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
    }
    ~Code() { pcre2_code_free(code); }
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
};

Regex::Regex(std::string_view pattern)
    : code_(
          std::make_unique<Code>(pattern, translate_regex(pattern), PCRE2_UCP | PCRE2_MULTILINE)) {}
Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex Regex::literal(std::string_view text) {
    return Regex(std::make_unique<Code>(text, std::string(text), PCRE2_LITERAL));
}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<Regex::Match> Regex::search(std::string_view text, size_t from) const {
    const Scratch& s = scratch();
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() ? text.data() : "");
    int rc = code_->jit ? pcre2_jit_match(code_->code, subject, text.size(), from,
                                          PCRE2_NO_UTF_CHECK, s.data, s.context)
                        : PCRE2_ERROR_JIT_STACKLIMIT;
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         s.data, s.context);
    if (rc == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (rc < 0)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("regular expression '{}' on a text of {} bytes, at byte {}: {}",
                                code_->source, text.size(), from, message(rc)));
    const size_t* ends = pcre2_get_ovector_pointer(s.data);
    return Match{ends[0], ends[1]};
}

size_t Regex::after(std::string_view text, size_t i) {
    return i < text.size() ? i + utf8_length(text[i]) : i + 1;
}

}  // namespace exl3::text
