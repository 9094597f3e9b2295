#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace exl3 {

/// The tokens of a vocabulary by their bytes: a tree laid out in the order of a depth-first walk,
/// so that walking it is a scan and leaving a branch is one jump.
class TokenTrie {
public:
    /// @param bytes  of each token id; tokens without bytes are not in the tree
    /// @param ends   ids that end a text
    TokenTrie(std::vector<std::string> bytes, std::vector<int32_t> ends);
    /// The tokens of a tokenizer. Special ones that do not end a text stand under
    /// Rules::special_bytes: only a grammar that asks for them by id allows them.
    static std::shared_ptr<const TokenTrie> of(const Tokenizer& tokenizer,
                                               std::vector<int32_t> ends);

    struct Node {
        uint8_t byte = 0;    ///< on the way here
        uint16_t depth = 0;  ///< bytes from the root
        int32_t after = 0;   ///< first node that is not below this one
        int32_t tokens = 0;  ///< first of its tokens in token_ids()
        int32_t count = 0;   ///< tokens whose bytes end here
    };
    const std::vector<Node>& nodes() const { return nodes_; }  ///< the root first
    std::span<const int32_t> tokens_at(const Node& n) const {
        return std::span(token_ids_)
            .subspan(static_cast<size_t>(n.tokens), static_cast<size_t>(n.count));
    }
    const std::string& bytes_of(int32_t token) const;  ///< empty: not in the tree
    const std::vector<int32_t>& ends() const { return ends_; }
    bool ends_text(int32_t token) const;
    const std::vector<int32_t>& spaces() const { return spaces_; }  ///< of white space only
    int tokens() const { return static_cast<int>(bytes_.size()); }  ///< ids, special ones included
    int longest() const { return longest_; }                        ///< bytes of a token

private:
    std::vector<Node> nodes_;
    std::vector<int32_t> token_ids_;
    std::vector<std::string> bytes_;
    std::vector<int32_t> ends_, spaces_;
    int longest_ = 0;
};

}  // namespace exl3
