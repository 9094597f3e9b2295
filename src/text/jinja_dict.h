#pragma once
#include <string_view>
#include <vector>

#include "text/jinja_runtime.h"

namespace exl3::jinja {

/// A dict in insertion order. Keys are found by Python's rules: 1, 1.0 and True are one key.
class Dict : public Object {
public:
    struct Entry {
        Value key, value;
        uint64_t hash = 0;
    };
    const std::vector<Entry>& entries() const { return entries_; }
    size_t size() const { return entries_.size(); }
    const Value* find(std::string_view key) const;
    /// Fails when the key cannot be hashed, as a list cannot.
    const Value* find(Runtime& rt, const Value& key) const;
    /// Adds the key or replaces its value.
    void set(Runtime& rt, const Value& key, Value value);
    void clear() {
        entries_.clear();
        table_.clear();
    }

private:
    template <typename Equal>
    size_t slot(uint64_t hash, Equal equal) const;
    void insert_last();

    std::vector<Entry> entries_;
    std::vector<uint32_t> table_;  ///< open addressing over entries, 0 empty; unused while few
};

Value make_dict(Runtime& rt);

/// Equal values hash alike; the seed differs from process to process, so that nobody can prepare
/// keys that collide. Fails for lists and dicts.
uint64_t hash_of(Runtime& rt, const Value& v);

/// {% set ns.x = ... %}: the one object that a template may change.
struct Namespace : Container {
    explicit Namespace(Value d) : attributes(std::move(d)) {}
    void clear() override { attributes = Value::none(); }
    Value attributes;       ///< a dict
    bool printing = false;  ///< repr() is inside it
};

}  // namespace exl3::jinja
