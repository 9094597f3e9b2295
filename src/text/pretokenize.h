#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_reader.h"

namespace exl3::text {

/// Pieces of one stretch of text: ranges of bytes, in order, none empty.
struct Pieces {
    struct Range {
        size_t begin, end;
    };
    std::string_view text;  ///< the caller's, until a step has to rewrite it
    std::string own;        ///< then `text` is a view of this
    std::vector<Range> ranges;
    bool starts_input = false;  ///< the text begins where the whole input begins
    std::string_view piece(Range r) const { return text.substr(r.begin, r.end - r.begin); }
    void replace_text(std::string rewritten) {
        own = std::move(rewritten);
        text = own;
    }
};

/// One step of the pre-tokenizer. Const and thread-safe.
class PreTokenizer {
public:
    PreTokenizer() = default;
    virtual ~PreTokenizer() = default;
    PreTokenizer(const PreTokenizer&) = delete;
    PreTokenizer& operator=(const PreTokenizer&) = delete;
    virtual void apply(Pieces& pieces) const = 0;
    /// Whether it leaves the characters of the text as they are.
    virtual bool only_splits() const { return true; }
    /// Whether it replaces bytes by their stand-ins.
    virtual bool maps_bytes() const { return false; }
};

using PreTokenizers = std::vector<std::unique_ptr<PreTokenizer>>;

/// The "pre_tokenizer" of tokenizer.json as a list of steps. Throws Error naming the key of what it
/// does not know.
PreTokenizers load_pre_tokenizers(const JsonNode& node);

/// Whether every piece comes out as stand-ins of its bytes, so that a model may take bytes.
bool gives_bytes(const PreTokenizers& steps);

/// Rewrites steps for which gives_bytes() holds so that pieces come out as bytes.
void keep_bytes(PreTokenizers& steps);

}  // namespace exl3::text
