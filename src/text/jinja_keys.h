#pragma once
#include <vector>

#include "text/jinja_runtime.h"

namespace exl3::jinja {

/// Looks up "a.b.0" in items: what the attribute argument of filters means.
class AttributeGetter {
public:
    /// `attribute`: a dotted string, an int, or none and missing for the item itself.
    AttributeGetter(Runtime& rt, const Value& attribute, Value otherwise = {});
    /// The attribute, `otherwise` in place of each undefined step.
    Value operator()(Runtime& rt, const Value& item) const;

private:
    std::vector<Value> parts_;
    Value otherwise_;
};

/// Strings in lower case, other values as they are: the sort key of case-insensitive filters.
Value folded(Runtime& rt, const Value& v);

struct Keyed {
    Value key, item;
};
/// Sorts by key, equal keys in their order, also when reversed.
void sort_keyed(Runtime& rt, std::vector<Keyed>& items, bool reverse);

}  // namespace exl3::jinja
