#include "text/jinja_dict.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "text/jinja_ops.h"

namespace exl3::jinja {
namespace {

constexpr size_t kScanned = 8;  // up to here looking at every key beats hashing one

uint64_t seed() {
    static const uint64_t s =
        mix64(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
              reinterpret_cast<uintptr_t>(&s));
    return s;
}

uint64_t hash_text(std::string_view text) {
    uint64_t h = seed() ^ text.size();
    while (text.size() >= 8) {
        uint64_t word = 0;
        std::memcpy(&word, text.data(), 8);
        h = mix64(h ^ word);
        text.remove_prefix(8);
    }
    uint64_t word = 0;
    if (!text.empty()) std::memcpy(&word, text.data(), text.size());
    return mix64(h ^ word);
}

uint64_t hash_int(Int i) {
    return mix64(seed() ^ static_cast<uint64_t>(i) ^ mix64(static_cast<uint64_t>(i >> 64)));
}

uint64_t hash_real(double d) {
    // An integral float hashes as the int that it equals.
    if (std::abs(d) < 0x1p126 && d == std::trunc(d)) return hash_int(static_cast<Int>(d));
    return mix64(seed() ^ std::bit_cast<uint64_t>(d));
}

}  // namespace

uint64_t hash_of(Runtime& rt, const Value& v) {
    const Deeper deeper(rt);
    rt.step();
    switch (v.kind()) {
        case Kind::boolean:
        case Kind::integer:
        case Kind::wide: return hash_int(v.as_int());
        case Kind::real: return hash_real(v.as_real());
        case Kind::string: return hash_text(v.as_text());
        case Kind::tuple: {
            uint64_t h = seed() + 1;
            for (const Value& item : v.as<Sequence>().items) h = mix64(h ^ hash_of(rt, item));
            return h;
        }
        case Kind::list:
        case Kind::dict:
        case Kind::dict_view:
            rt.fail(Fault::type, std::string("unhashable type: '") + type_name(v) + "'");
        case Kind::none: return mix64(seed() + 2);
        case Kind::undefined: return mix64(seed() + 3);
        default: return mix64(seed() ^ reinterpret_cast<uintptr_t>(v.object()));
    }
}

template <typename Equal>
size_t Dict::slot(uint64_t hash, Equal equal) const {
    const size_t mask = table_.size() - 1;
    size_t i = hash & mask;
    while (table_[i] && !equal(entries_[table_[i] - 1])) i = (i + 1) & mask;
    return i;
}

const Value* Dict::find(std::string_view key) const {
    const auto equal = [&](const Entry& e) { return e.key.is_string() && e.key.as_text() == key; };
    if (table_.empty()) {
        for (const Entry& e : entries_)
            if (equal(e)) return &e.value;
        return nullptr;
    }
    const uint32_t at = table_[slot(hash_text(key), equal)];
    return at ? &entries_[at - 1].value : nullptr;
}

const Value* Dict::find(Runtime& rt, const Value& key) const {
    if (key.is_string()) return find(key.as_text());
    const uint64_t hash = hash_of(rt, key);
    const auto equal = [&](const Entry& e) { return e.hash == hash && equals(rt, e.key, key); };
    if (table_.empty()) {
        for (const Entry& e : entries_)
            if (equal(e)) return &e.value;
        return nullptr;
    }
    const uint32_t at = table_[slot(hash, equal)];
    return at ? &entries_[at - 1].value : nullptr;
}

void Dict::set(Runtime& rt, const Value& key, Value value) {
    if (const Value* found = find(rt, key)) {
        const_cast<Value&>(*found) = std::move(value);
        return;
    }
    rt.heap.grow(*this, sizeof(Entry) + 2 * sizeof(uint32_t));
    entries_.push_back({key, std::move(value), hash_of(rt, key)});
    insert_last();
}

void Dict::insert_last() {
    const auto never = [](const Entry&) { return false; };
    if (entries_.size() <= kScanned) return;
    if (entries_.size() * 2 > table_.size()) {
        table_.assign(std::bit_ceil(entries_.size() * 4), 0);
        for (size_t i = 0; i < entries_.size(); ++i)
            table_[slot(entries_[i].hash, never)] = static_cast<uint32_t>(i + 1);
    } else {
        table_[slot(entries_.back().hash, never)] = static_cast<uint32_t>(entries_.size());
    }
}

Value make_dict(Runtime& rt) {
    return Value::object(Kind::dict, rt.heap.make<Dict>(0));
}

}  // namespace exl3::jinja
