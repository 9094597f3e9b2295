#pragma once
#include <string>
#include <vector>

#include "grammar/rules.h"
#include "io/json.h"

namespace exl3 {

/// The pieces of JSON text that do not depend on a schema, as rules of one grammar, each made when
/// it is first asked for.
class JsonText {
public:
    explicit JsonText(Rules& rules) : r_(rules) {}

    /// Nothing, a space, or a line end with up to 20 spaces or tabs of indentation: layout that
    /// cannot run on for ever.
    Rules::Expr space();
    Rules::Expr string();                  ///< any string, quotes included
    Rules::Expr string(int min, int max);  ///< of so many characters; max < min: no limit
    Rules::Expr value();                   ///< any value
    Rules::Expr object();                  ///< any object
    Rules::Expr array();                   ///< any array
    /// A value exactly, in the notation of Json::dump.
    Rules::Expr literal(const Json& value) { return r_.text(value.dump()); }
    /// One character of a set inside a string, in its shortest form.
    Rules::Expr string_char(const CharSet& set);
    /// Strings, quotes included, other than these.
    Rules::Expr string_except(const std::vector<std::string>& texts);
    Rules::Expr quoted(Rules::Expr content) {
        return r_.sequence({r_.text("\""), content, r_.text("\"")});
    }
    /// `open` item, item ... `close` with from min to max items; max < min: no limit.
    Rules::Expr list(const char* open, Rules::Expr item, int min, int max, const char* close);
    Rules::Expr member(Rules::Expr key, Rules::Expr value) {
        return r_.sequence({key, r_.text(":"), space(), value});
    }
    Rules::Expr comma() { return r_.sequence({r_.text(","), space()}); }

private:
    Rules::Expr any_char();
    Rules::Expr except(const std::vector<std::u32string>& texts, size_t depth);
    Rules& r_;
    Rules::Rule space_ = -1, char_ = -1, string_ = -1, value_ = -1, object_ = -1, array_ = -1;
};

}  // namespace exl3
