#include "grammar/token_trie.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "grammar/rules.h"

namespace exl3 {

TokenTrie::TokenTrie(std::vector<std::string> bytes, std::vector<int32_t> ends)
    : bytes_(std::move(bytes)), ends_(std::move(ends)) {
    std::sort(ends_.begin(), ends_.end());
    for (const int32_t id : ends_)
        if (id >= 0 && id < tokens()) bytes_[static_cast<size_t>(id)].clear();
    std::vector<int32_t> order;
    for (int32_t id = 0; id < tokens(); ++id)
        // A depth must fit its field; no tokenizer comes near.
        if (!bytes_of(id).empty() && bytes_of(id).size() < 0xFFFF) order.push_back(id);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        const int c = bytes_of(a).compare(bytes_of(b));
        return c != 0 ? c < 0 : a < b;
    });
    nodes_.emplace_back();
    std::vector<int32_t> path = {0};  // nodes from the root to the last token's
    std::string last;
    for (const int32_t id : order) {
        const std::string& text = bytes_of(id);
        longest_ = std::max(longest_, static_cast<int>(text.size()));
        const auto differ = std::mismatch(text.begin(), text.end(), last.begin(), last.end());
        const auto common = static_cast<size_t>(differ.first - text.begin());
        while (path.size() > common + 1) {
            nodes_[static_cast<size_t>(path.back())].after = static_cast<int32_t>(nodes_.size());
            path.pop_back();
        }
        for (size_t i = common; i < text.size(); ++i) {
            path.push_back(static_cast<int32_t>(nodes_.size()));
            nodes_.push_back({.byte = static_cast<uint8_t>(text[i]),
                              .depth = static_cast<uint16_t>(i + 1),
                              .tokens = static_cast<int32_t>(token_ids_.size())});
        }
        ++nodes_[static_cast<size_t>(path.back())].count;
        token_ids_.push_back(id);
        if (text.find_first_not_of(" \n\r\t") == std::string::npos) spaces_.push_back(id);
        last = text;
    }
    for (const int32_t n : path)
        nodes_[static_cast<size_t>(n)].after = static_cast<int32_t>(nodes_.size());
}

std::shared_ptr<const TokenTrie> TokenTrie::of(const Tokenizer& tokenizer,
                                               std::vector<int32_t> ends) {
    std::vector<std::string> bytes(static_cast<size_t>(tokenizer.vocab_size()));
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
        bytes[static_cast<size_t>(id)] =
            tokenizer.is_special(id) ? Rules::special_bytes(id) : tokenizer.bytes_of(id);
    return std::make_shared<const TokenTrie>(std::move(bytes), std::move(ends));
}

const std::string& TokenTrie::bytes_of(int32_t token) const {
    static const std::string none;
    return token >= 0 && token < tokens() ? bytes_[static_cast<size_t>(token)] : none;
}

bool TokenTrie::ends_text(int32_t token) const {
    return std::binary_search(ends_.begin(), ends_.end(), token);
}

}  // namespace exl3
