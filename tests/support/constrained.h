#pragma once
#include <string>
#include <vector>

#include "base/random.h"
#include "grammar/constraint.h"

namespace exl3::test {

/// Every byte, common pieces of JSON and words, and one end token (the last id).
inline std::shared_ptr<const TokenTrie> small_vocabulary() {
    std::vector<std::string> tokens;
    for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    for (const char* t :
         {"{\"",    "\":", "\", \"", "\"}",  "\"},",    "}}",     "]}",    "[]",       "{}",
          "\": \"", "\",", "  ",     "\n",   "\n  ",    "true",   "fal",   "se",       "null",
          "nu",     "10",  "123",    "0.5",  "-1",      "e+",     "name",  "na",       "age",
          "city",   "\\n", "\\u00",  "\\\"", "ü",       "日本",   "日",    "\xe6\x97", "hello",
          " world", "a",   "ab",     "abc",  "2024-01", "-15",    "T12:",  "00",       "@example",
          ".com",   "\"]", "], [",   "1, 2", "1]",      "\"a\":", "value", "kind",     "\": {\"",
          "\":[",   "-",   ".5"})
        tokens.emplace_back(t);
    const auto end = static_cast<int32_t>(tokens.size());
    tokens.emplace_back();
    return std::make_shared<const TokenTrie>(std::move(tokens), std::vector<int32_t>{end});
}

/// Ids that a mask allows.
inline std::vector<int32_t> allowed(const TokenMask& mask, int tokens) {
    std::vector<int32_t> out;
    for (int32_t id = 0; id < tokens; ++id)
        if (mask.allows(id)) out.push_back(id);
    return out;
}

struct Written {
    std::string text;
    bool ended = false;
};

/// Draws tokens at random among those allowed until the end token or `most` tokens. After half of
/// them, those that bring a text to its end are preferred.
inline Written write_at_random(const std::shared_ptr<Constraint>& c, const TokenTrie& trie,
                               uint64_t seed, int most = 400) {
    Random random(seed);
    ConstraintState state(c);
    TokenMask mask;
    Written w;
    for (int i = 0; i < most; ++i) {
        state.mask(mask);
        const auto ids = allowed(mask, trie.tokens());
        EXL3_CHECK(!ids.empty());
        int32_t id = ids[random.below(ids.size())];
        const bool hurry = i > most / 2 || random.below(4) == 0;
        for (const char* closing : {"\"", "}", "]", ","}) {
            const auto byte = static_cast<int32_t>(static_cast<unsigned char>(*closing));
            if (hurry && mask.allows(byte)) {
                id = byte;
                break;
            }
        }
        if (hurry && state.may_end()) id = trie.ends().front();
        EXL3_CHECK(state.accept(id));
        if (trie.ends_text(id)) {
            w.ended = true;
            break;
        }
        w.text += trie.bytes_of(id);
    }
    return w;
}

}  // namespace exl3::test
