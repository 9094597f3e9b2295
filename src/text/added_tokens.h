#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/trie.h"

namespace exl3::text {

/// A token that is cut out of the text before the model sees it.
struct AddedToken {
    std::string content;
    int32_t id = -1;
    bool single_word = false;  ///< not beside a word character
    bool lstrip = false;       ///< takes the white space before it along
    bool rstrip = false;       ///< takes the white space behind it along
    bool normalized = false;   ///< sought in the normalized text
    bool special = false;      ///< left out when decoding without special tokens
};

/// Finds the leftmost, then longest, of many strings.
class StringMatcher {
public:
    void add(std::string_view text, uint32_t value);  ///< not empty; the first of equals stays
    struct Match {
        size_t begin, end;
        uint32_t value;
    };
    std::optional<Match> find(std::string_view text, size_t from) const;

private:
    Trie trie_;  // walked from each position whose byte begins some string
};

/// A stretch of text between added tokens (id < 0), or an added token.
struct Segment {
    int32_t id;
    size_t begin, end;
};

/// The added tokens of a tokenizer.
class AddedTokens {
public:
    /// A token with known content replaces the former in look-ups by id.
    void add(AddedToken token);
    /// Must follow the last add. normalize(content) gives what a normalized token is sought as.
    template <typename F>
    void finish(F&& normalize) {
        for (const bool special : {true, false})  // of tokens that look alike a special one wins
            for (uint32_t i = 0; i < tokens_.size(); ++i) {
                if (tokens_[i].special != special) continue;
                if (!tokens_[i].normalized)
                    raw_.add(tokens_[i].content, i);
                else if (const std::string s = normalize(tokens_[i].content); !s.empty())
                    normalized_.add(s, i);
            }
    }

    const AddedToken* by_id(int32_t id) const;
    const AddedToken* by_content(std::string_view content) const;
    const std::vector<AddedToken>& all() const { return tokens_; }

    /// Cuts `text` at the tokens sought in raw (or normalized) text. Segments cover the text, apart
    /// from stripped white space; without `specials` special tokens are ordinary text.
    void split(std::string_view text, bool in_normalized, bool specials,
               std::vector<Segment>& out) const;

private:
    std::vector<AddedToken> tokens_;
    std::unordered_map<int32_t, uint32_t> by_id_;
    std::unordered_map<std::string, uint32_t> by_content_;
    StringMatcher raw_, normalized_;
};

}  // namespace exl3::text
