#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace exl3::text {

/// A small JSON tree for the parts of a tokenizer file that describe its components. Every access
/// that fails throws Error{invalid_file} naming the file and the path of the key.
class JsonValue {
public:
    enum class Kind { null, boolean, number, string, array, object };
    Kind kind = Kind::null;
    bool truth = false;
    double number = 0;
    std::string string;
    std::vector<JsonValue> items;  ///< of an array
    struct Member;
    std::vector<Member> members;  ///< of an object, in file order

    bool is_null() const { return kind == Kind::null; }
    bool is_string() const { return kind == Kind::string; }
    bool is_array() const { return kind == Kind::array; }
    bool is_object() const { return kind == Kind::object; }
    /// The member, the last one where a key is repeated; nullptr if missing or null.
    const JsonValue* find(std::string_view key) const;

    // Defined where Member is complete.
    JsonValue();
    ~JsonValue();
    JsonValue(JsonValue&&) noexcept;
    JsonValue& operator=(JsonValue&&) noexcept;
};

struct JsonValue::Member {
    std::string key;
    JsonValue value;
};

/// Where a JsonValue stands, so that an error can name it. Cheap to copy; refers to the value.
class JsonNode {
public:
    JsonNode(const JsonValue& value, std::string file, std::string path)
        : value_(&value), file_(std::move(file)), path_(std::move(path)) {}
    const JsonValue& value() const { return *value_; }
    const std::string& path() const { return path_; }
    bool has(std::string_view key) const { return value_->find(key) != nullptr; }
    JsonNode at(std::string_view key) const;  ///< must be present and not null
    std::vector<JsonNode> items() const;      ///< the value itself must be an array
    std::vector<JsonNode> list(std::string_view key) const { return at(key).items(); }
    const std::string& text() const;  ///< the value itself must be a string
    const std::string& text(std::string_view key) const { return at(key).text(); }
    std::string text(std::string_view key, const std::string& otherwise) const;
    bool flag(std::string_view key, bool otherwise) const;
    int64_t integer(std::string_view key) const;
    int64_t integer(std::string_view key, int64_t otherwise) const;
    [[noreturn]] void fail(std::string_view what, Errc code = Errc::invalid_file) const;

private:
    int64_t as_integer() const;
    const JsonValue* value_;
    std::string file_;
    std::string path_;
};

/// Pull parser over a JSON text held in memory: one pass, no tree, strings without escapes are
/// views of the input. It is lenient where tokenizer files need it: a byte order mark is skipped,
/// repeated keys are handed over as they come, a lone surrogate escape reads as U+FFFD and invalid
/// UTF-8 inside strings is replaced. Errors (Error{invalid_file}) name file, byte and key path.
class JsonReader {
public:
    using Kind = JsonValue::Kind;
    JsonReader(std::string_view text, std::string file);

    Kind peek();  ///< the kind of the next value
    /// Calls member(key) for each member; member must read the value. The key stays valid while
    /// member has not read from the reader.
    template <typename F>
    void object(F&& member) {
        open('{', "an object");
        while (next_item('}')) {
            const std::string_view key = read_key();
            member(key);
        }
    }
    /// Calls element() for each element; element must read it.
    template <typename F>
    void array(F&& element) {
        open('[', "an array");
        while (next_item(']')) element();
    }
    std::string_view string();  ///< valid until the next call
    double number();
    int64_t integer();
    bool boolean();
    void null();
    void skip();  ///< any value
    JsonValue value();
    void finish();  ///< only white space may follow

    size_t offset() const { return at_; }
    /// Continues at a value whose offset() was taken before, outside all objects and arrays; `path`
    /// names it in errors.
    void seek(size_t offset, std::string path) {
        at_ = offset;
        base_path_ = std::move(path);
    }
    const std::string& file() const { return file_; }
    [[noreturn]] void fail(std::string_view what) const;

private:
    struct Frame {
        size_t key = 0;     // offset of the current key in an object
        int64_t index = 0;  // of the current element in an array; -1 before the first
        bool is_array = false;
    };
    void skip_space();
    void open(char bracket, const char* what);
    bool next_item(char close);
    std::string_view read_key();
    std::string_view read_string();
    void read_escape();
    uint32_t read_hex4();
    void word(std::string_view expected);
    std::string path() const;

    std::string_view text_;
    std::string file_;
    size_t at_ = 0;
    std::string scratch_;
    std::string base_path_;
    std::vector<Frame> frames_;
};

}  // namespace exl3::text
