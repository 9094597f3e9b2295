#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/error.h"
#include "io/json.h"

namespace exl3::api {

/// Typed, checked access to the members of a request object. A null member counts as absent and
/// unknown members are ignored, as clients expect; a member of the wrong type or range throws the
/// ApiError of bad_field(), with the path of the member. Each getter takes the names a field goes
/// by; the first that is present counts. Refers to the object, which must outlive it.
class Fields {
public:
    using Names = std::initializer_list<std::string_view>;
    /// @param path  stands in front of field names in errors: "" or "messages[2]"
    /// Throws unless `value` is an object.
    Fields(const Json& value, std::string path);

    /// The member, or nullptr if it is absent or null.
    const Json* find(Names names) const;
    bool has(Names names) const { return find(names) != nullptr; }
    std::optional<std::string> text(Names names) const;
    std::optional<bool> flag(Names names) const;
    std::optional<int64_t> integer(Names names, int64_t least, int64_t greatest) const;
    std::optional<double> number(Names names, double least, double greatest) const;
    /// A string or a list of strings.
    std::vector<std::string> texts(Names names) const;
    /// A list of whole numbers, or text with commas between them.
    std::vector<int64_t> integers(Names names) const;
    /// The member, which must be an object (`object`) or an array (`array`); nullptr if absent.
    const Json* object(Names names) const;
    const Json* array(Names names) const;
    /// The member, or an error that says it is missing.
    std::string need_text(std::string_view name) const;
    const Json& need_array(std::string_view name) const;

    /// The full path of a member.
    std::string at(std::string_view name) const;
    [[noreturn]] void fail(std::string_view name, std::string_view what) const;
    const Json& json() const { return *value_; }

private:
    struct Found {
        std::string_view name;
        const Json* value = nullptr;
    };
    Found look(Names names) const;
    [[noreturn]] void wrong_type(const Found& found, std::string_view needed) const;
    const Json* value_;
    std::string path_;
};

/// "a string", "an object", ...: what a JSON value is, for messages.
std::string kind_of(const Json& value);
/// JSON text for the wire: bytes that are not UTF-8 become U+FFFD, so it never throws.
std::string to_text(const Json& value);
/// The body of a request: one JSON object. Throws ApiError naming the byte of a syntax error, a
/// repeated key, nesting that is too deep, or text that is not UTF-8.
Json parse_body(std::string_view body);

}  // namespace exl3::api
