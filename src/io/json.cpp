#include "io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

namespace exl3 {
namespace {

constexpr size_t kDepthLimit = 512;

/// An iterator over the text that tells outsiders how far the parser has come.
struct CountingIterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    const char* at = nullptr;
    const char** reached = nullptr;  ///< shared by all copies

    reference operator*() const { return *at; }
    CountingIterator& operator++() {
        *reached = ++at;
        return *this;
    }
    CountingIterator operator++(int) {
        const CountingIterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const CountingIterator& o) const { return at == o.at; }
    bool operator!=(const CountingIterator& o) const { return at != o.at; }
};

/// The library's words for a syntax error, without its own prefix and safe to print: what it last
/// read may be any bytes of a broken file.
std::string plain(std::string_view message) {
    for (const std::string_view before : {"syntax error ", "] "})
        if (const size_t p = message.find(before); p != std::string_view::npos) {
            message.remove_prefix(before == "] " ? p + before.size() : p);
            break;
        }
    constexpr size_t kLimit = 240;
    std::string s;
    for (const char c : message.substr(0, kLimit))
        if (c >= 0x20 && c < 0x7f)
            s += c;
        else
            s += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return message.size() > kLimit ? s + "..." : s;
}

/// Builds the document from parser events. Members of an open object wait in a vector of their own:
/// nlohmann's ordered object finds a key by looking at all of them, which a vocabulary of 250,000
/// entries makes far too slow, and copies its members whenever it grows.
class Builder : public nlohmann::json_sax<Json> {
public:
    Builder(std::string_view text, std::string file, std::vector<uint64_t>* key_offsets,
            uint64_t base)
        : text_(text),
          reached_(text.data()),
          file_(std::move(file)),
          outer_(key_offsets),
          base_(base) {}

    CountingIterator begin() { return {text_.data(), &reached_}; }
    CountingIterator end() { return {text_.data() + text_.size(), &reached_}; }
    std::optional<Error>& error() { return error_; }
    Json& root() { return root_; }

    bool null() override { return add(nullptr); }
    bool boolean(bool v) override { return add(v); }
    bool number_integer(int64_t v) override { return add(v); }
    bool number_unsigned(uint64_t v) override { return add(v); }
    bool number_float(double v, const std::string&) override { return add(v); }
    bool string(std::string& v) override { return add(std::move(v)); }
    bool binary(Json::binary_t&) override { return false; }  // never in JSON text
    bool start_object(size_t) override { return open(true); }
    bool start_array(size_t) override { return open(false); }
    bool key(std::string& name) override {
        open_.back().keys.push_back({std::move(name), key_offset()});
        return true;
    }
    bool end_object() override {
        Level level = std::move(open_.back());
        open_.pop_back();
        if (!keys_are_unique(level)) return false;
        if (open_.empty() && outer_)
            for (const Key& k : level.keys) outer_->push_back(base_ + k.offset);
        Json object = Json::object();
        auto& members = object.get_ref<Json::object_t&>();
        members.reserve(level.keys.size());
        for (size_t i = 0; i < level.keys.size(); ++i)
            static_cast<Json::object_t::Container&>(members).emplace_back(
                std::move(level.keys[i].name), std::move(level.values[i]));
        return add(std::move(object));
    }
    bool end_array() override {
        Level level = std::move(open_.back());
        open_.pop_back();
        return add(Json::array_t(std::move(level.values)));
    }
    bool parse_error(size_t position, const std::string&, const Json::exception& problem) override {
        // The position counts bytes read, the one that does not fit included.
        return fail(position > 0 ? position - 1 : 0,
                    fmt::format("found malformed JSON: {}", plain(problem.what())));
    }

private:
    struct Key {
        std::string name;
        uint64_t offset = 0;
    };
    struct Level {  ///< an object or array whose end has not been seen
        bool is_object = false;
        std::vector<Key> keys;  ///< of an object, one per value
        std::vector<Json> values;
    };

    template <typename T>
    bool add(T&& value) {
        if (open_.empty())
            root_ = std::forward<T>(value);
        else
            open_.back().values.emplace_back(std::forward<T>(value));
        return true;
    }
    bool open(bool is_object) {
        if (open_.size() == kDepthLimit)
            return fail(offset() - 1,
                        fmt::format("found lists and objects nested deeper than {} levels, needed "
                                    "at most that",
                                    kDepthLimit));
        open_.push_back({is_object, {}, {}});
        return true;
    }
    bool keys_are_unique(const Level& level) {
        const auto& keys = level.keys;
        std::vector<size_t> order(keys.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
            const int c = keys[a].name.compare(keys[b].name);
            return c != 0 ? c < 0 : a < b;
        });
        for (size_t i = 1; i < order.size(); ++i)
            if (const Key& k = keys[order[i]]; k.name == keys[order[i - 1]].name)
                return fail(k.offset,
                            fmt::format("found key '{}' twice in one object, needed once", k.name));
        return true;
    }
    bool fail(uint64_t offset, std::string_view what) {
        error_.emplace(Errc::invalid_file, Where{file_, {}, base_ + offset}, what);
        return false;
    }
    uint64_t offset() const { return static_cast<uint64_t>(reached_ - text_.data()); }
    /// Where the key that has just been read starts. Quotes inside it follow a backslash; the one
    /// that opens it cannot.
    uint64_t key_offset() const {
        size_t p = text_.rfind('"', offset() - 1);
        do p = text_.rfind('"', p - 1);
        while (text_[p - 1] == '\\');
        return p;
    }

    std::string_view text_;
    const char* reached_;
    std::string file_;
    std::vector<uint64_t>* outer_;
    uint64_t base_;
    std::vector<Level> open_;
    Json root_;
    std::optional<Error> error_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& file,
                        std::vector<uint64_t>* key_offsets, uint64_t base) {
    // The library takes a zero byte for the end of its input and would not look at what follows.
    if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
        return Error(Errc::invalid_file, {file, {}, base + zero},
                     "found malformed JSON: a zero byte");
    Builder builder(text, file, key_offsets, base);
    const bool ok = Json::sax_parse(builder.begin(), builder.end(), &builder);
    if (builder.error()) return std::move(*builder.error());
    EXL3_CHECK(ok, "the parser stopped without saying why");
    return std::move(builder.root());
}

}  // namespace exl3
