#pragma once
#include <cstdint>
#include <vector>

#include "text/json_reader.h"

namespace exl3::text {

/// The special tokens that the "post_processor" of tokenizer.json puts around the ids of one text.
class PostProcessor {
public:
    PostProcessor() = default;  ///< adds nothing
    static PostProcessor load(const JsonNode& node);
    /// What `before` and `after` the text alone say.
    PostProcessor(std::vector<int32_t> before, std::vector<int32_t> after);

    std::vector<int32_t> apply(std::vector<int32_t> ids) const;
    /// The ids added to an empty text.
    std::vector<int32_t> added() const { return apply({}); }
    /// Whether the first thing in the result is this token.
    bool begins_with(int32_t id) const;
    bool is_template() const { return !steps_.empty(); }

private:
    static constexpr int32_t kText = -1;  // the text's place among the ids of a step
    void load_step(const JsonNode& node);
    void load_template(const JsonNode& node);
    std::vector<std::vector<int32_t>> steps_;
};

}  // namespace exl3::text
