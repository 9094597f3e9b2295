#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The values that a template computes with: Python's, as far as a template can tell them apart.
/// Small ones live in the Value itself, the rest in counted objects on the heap of one rendering.
namespace exl3::jinja {

using Int = __int128;

enum class Kind : uint8_t {
    missing,  ///< an unset variable or an argument not given; a template never sees it
    none,
    boolean,
    integer,  ///< fits 64 bits; `wide` otherwise
    real,
    // From here on the Value points to an Object.
    wide,
    undefined,
    string,
    list,
    tuple,
    dict,
    dict_view,
    range,
    iterator,
    function,
    method,
    macro,
    name_space,
    loop,
    cycler,
    joiner,
    frame  ///< the variables of a running template or macro; a template never sees it
};

class Heap;

/// What a Value can point to. Objects with a null heap belong to a parsed template: they are
/// shared between threads, never change and are not counted.
struct Object {
    Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    virtual ~Object() = default;

    Heap* heap = nullptr;
    union {
        size_t charged = 0;  ///< bytes taken from the heap's budget
        Object* next_dead;   ///< in the heap's list of objects to delete
    };
    uint32_t refs = 0;
};

/// An object that can come to contain itself (frames, namespaces, loops). The heap knows them all,
/// so that it can break the cycles at the end.
struct Container : Object {
    Container() = default;
    ~Container() override;
    virtual void clear() = 0;
    Container* previous = nullptr;
    Container* next = nullptr;
};

struct MemoryExhausted {};  ///< thrown by Heap::charge

/// The memory of one rendering: counts references, deletes without recursion, holds a budget.
class Heap {
public:
    explicit Heap(size_t budget) : budget_(budget) {}
    Heap(const Heap&) = delete;
    Heap& operator=(const Heap&) = delete;
    ~Heap();

    /// A new object, charged with its own size and `extra` bytes that it holds elsewhere.
    template <typename T, typename... Args>
    T* make(size_t extra, Args&&... args) {
        charge(sizeof(T) + extra);
        T* object = new T{std::forward<Args>(args)...};
        object->heap = this;
        object->charged = sizeof(T) + extra;
        if constexpr (std::is_base_of_v<Container, T>) link(*object);
        return object;
    }
    /// Charges `bytes` more to an object that grows.
    void grow(Object& object, size_t bytes) {
        charge(bytes);
        object.charged += bytes;
    }
    void charge(size_t bytes) {
        if (bytes > budget_ - live_) throw MemoryExhausted{};
        live_ += bytes;
    }
    void discharge(size_t bytes) { live_ -= bytes; }
    /// Throws unless `bytes` more would fit; for results that are built before they are charged.
    void check(size_t bytes) const {
        if (bytes > budget_ - live_) throw MemoryExhausted{};
    }
    /// Deletes an object without references, and all that it alone kept.
    void retire(Object* object) noexcept;

private:
    friend struct Container;
    void link(Container& c);
    void unlink(Container& c);

    size_t budget_ = 0;
    size_t live_ = 0;
    Object* dead_ = nullptr;
    bool deleting_ = false;
    Container* containers_ = nullptr;
};

class Value {
public:
    Value() = default;  ///< missing
    Value(const Value& other) : kind_(other.kind_), payload_(other.payload_) { retain(); }
    Value(Value&& other) noexcept : kind_(other.kind_), payload_(other.payload_) {
        other.kind_ = Kind::missing;
    }
    Value& operator=(const Value& other) {
        Value copy(other);
        swap(copy);
        return *this;
    }
    Value& operator=(Value&& other) noexcept {
        Value taken(std::move(other));
        swap(taken);
        return *this;
    }
    ~Value() {
        if (is_object() && payload_.object->heap && --payload_.object->refs == 0)
            payload_.object->heap->retire(payload_.object);
    }

    static Value none() { return Value(Kind::none); }
    static Value boolean(bool b) {
        Value v(Kind::boolean);
        v.payload_.integer = b;
        return v;
    }
    static Value integer(int64_t i) {
        Value v(Kind::integer);
        v.payload_.integer = i;
        return v;
    }
    static Value real(double d) {
        Value v(Kind::real);
        v.payload_.real = d;
        return v;
    }
    static Value object(Kind kind, Object* object) {
        Value v(kind);
        v.payload_.object = object;
        v.retain();
        return v;
    }

    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }
    bool missing() const { return kind_ == Kind::missing; }
    bool is_none() const { return kind_ == Kind::none; }
    bool is_undefined() const { return kind_ == Kind::undefined; }
    bool is_string() const { return kind_ == Kind::string; }
    bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }
    /// bool, int of any size: what Python calls an int.
    bool is_int() const {
        return kind_ == Kind::boolean || kind_ == Kind::integer || kind_ == Kind::wide;
    }
    bool is_number() const { return is_int() || kind_ == Kind::real; }
    bool is_object() const { return kind_ >= Kind::wide; }

    bool as_bool() const { return payload_.integer != 0; }
    int64_t as_integer() const { return payload_.integer; }  ///< boolean or integer
    Int as_int() const;                                      ///< any int
    double as_real() const { return payload_.real; }
    double as_double() const;  ///< any number
    std::string_view as_text() const;
    template <typename T>
    T& as() const {
        return *static_cast<T*>(payload_.object);
    }
    Object* object() const { return payload_.object; }

private:
    explicit Value(Kind kind) : kind_(kind) {}
    void retain() const {
        if (is_object() && payload_.object->heap) ++payload_.object->refs;
    }
    void swap(Value& other) noexcept {
        std::swap(kind_, other.kind_);
        std::swap(payload_, other.payload_);
    }

    Kind kind_ = Kind::missing;
    union Payload {
        int64_t integer = 0;
        double real;
        Object* object;
    } payload_;
};

struct Wide : Object {
    explicit Wide(Int v) : value(v) {}
    Int value = 0;
};

struct String : Object {
    explicit String(std::string t, bool markup = false);
    std::string text;
    size_t length = 0;    ///< code points
    bool markup = false;  ///< safe for HTML: Python's Markup
    bool ascii() const { return length == text.size(); }
};

/// Why a value is undefined, kept apart until somebody asks for the message.
struct Undefined : Object {
    enum class Why : uint8_t { name, attribute, element, parameter, hint, unsafe };
    Undefined(Why w, const char* o, Value s) : why(w), owner(o), subject(std::move(s)) {}
    Why why = Why::name;
    const char* owner = "";  ///< "dict object" and the like, or the whole hint
    Value subject;           ///< the name or index that was looked up
};

/// list and tuple
struct Sequence : Object {
    explicit Sequence(std::vector<Value> i) : items(std::move(i)) {}
    std::vector<Value> items;
    bool group = false;  ///< a tuple of groupby, with the attributes grouper and list
};

struct Range : Object {
    Range(int64_t a, int64_t b, int64_t s) : start(a), stop(b), step(s) {}
    int64_t start = 0, stop = 0, step = 1;
    int64_t length() const;
    int64_t at(int64_t i) const { return start + i * step; }
};

struct DictView : Object {
    enum class Part : uint8_t { keys, values, items };
    DictView(Value d, Part p) : dict(std::move(d)), part(p) {}
    Value dict;
    Part part = Part::keys;
};

inline Int Value::as_int() const {
    return kind_ == Kind::wide ? as<Wide>().value : Int(payload_.integer);
}
inline double Value::as_double() const {
    return kind_ == Kind::real ? payload_.real : static_cast<double>(as_int());
}
inline std::string_view Value::as_text() const {
    return as<String>().text;
}

}  // namespace exl3::jinja
