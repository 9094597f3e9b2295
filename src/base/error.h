#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace exl3 {

/// What went wrong, for a caller that must choose an answer (exit status, HTTP status).
enum class Errc {
    invalid_file,      ///< bytes from outside do not mean what they should
    invalid_argument,  ///< a flag or a request asks for something impossible
    unsupported,       ///< well formed, but not known to this build
    io,                ///< the operating system refused
    out_of_memory,
    device,
    cancelled
};

/// Where in the input a problem was found; empty fields are left out of the message.
struct Where {
    std::string file;
    std::string tensor;
    std::optional<uint64_t> offset;  ///< bytes from the start of `file`
};

/// The one exception of the project. Its text reads "file: tensor 'x': at byte n: what".
class Error : public std::runtime_error {
public:
    Error(Errc code, Where where, std::string_view what);
    Errc code() const { return code_; }
    const Where& where() const { return where_; }

private:
    Errc code_;
    Where where_;
};

/// Value or Error. Same member names as std::expected, so it becomes an alias for it later.
template <typename T>
class [[nodiscard]] Result {
public:
    // Implicit on purpose: `return value;` and `return Error(...);` are how parsers read.
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
    bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }
    const Error& error() const { return *std::get_if<1>(&state_); }
    /// The value; throws the Error if there is none.
    T& value() & {
        if (!has_value()) throw error();
        return *std::get_if<0>(&state_);
    }
    T&& value() && {
        if (!has_value()) throw error();
        return std::move(*std::get_if<0>(&state_));
    }
    T& operator*() & { return *std::get_if<0>(&state_); }
    T* operator->() { return std::get_if<0>(&state_); }

private:
    std::variant<T, Error> state_;
};

[[noreturn]] void check_failed(const char* file, int line, const char* cond, std::string_view note);

}  // namespace exl3

/// A broken invariant is our bug: says where and aborts, in every build.
#define EXL3_CHECK(cond, ...) \
    (static_cast<bool>(cond)  \
         ? void(0)            \
         : ::exl3::check_failed(__FILE__, __LINE__, #cond, ::std::string_view{__VA_ARGS__}))
