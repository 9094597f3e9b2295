#pragma once
#include <memory>
#include <string>

#include "text/json_reader.h"

namespace exl3::text {

/// Rewrites text before it is split into pieces. Const and thread-safe.
class Normalizer {
public:
    Normalizer() = default;
    virtual ~Normalizer() = default;
    Normalizer(const Normalizer&) = delete;
    Normalizer& operator=(const Normalizer&) = delete;
    /// In place; the text is valid UTF-8 before and after.
    virtual void apply(std::string& text) const = 0;
};

/// The "normalizer" of tokenizer.json. Throws Error naming the key of what it does not know.
std::unique_ptr<Normalizer> load_normalizer(const JsonNode& node);

}  // namespace exl3::text
