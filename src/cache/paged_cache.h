#pragma once
#include <vector>

#include "core/device.h"
#include "ops/attention.h"

namespace exl3 {

/// What each layer keeps per token. Layers without heads keep nothing.
struct KvLayout {
    struct Layer {
        int kv_heads = 0, head_dim = 0;
    };
    std::vector<Layer> layers;

    /// The same layout with every layer but one empty: for work that goes layer by layer.
    KvLayout only(int layer) const;
    uint64_t bytes_per_token() const;  ///< f16 keys and values over all layers
};

/// Pages needed for so many tokens.
constexpr int pages_for(int64_t tokens) {
    return static_cast<int>((tokens + kPageTokens - 1) / kPageTokens);
}

/// The keys and values behind a page table: for each layer, `pages` pages of 256 tokens, f16.
class PagedCache {
public:
    /// Throws Error{out_of_memory}.
    PagedCache(Device& device, const KvLayout& layout, int pages);
    KvView layer(int i) const;  ///< empty views for a layer that keeps nothing
    int pages() const { return pages_; }

private:
    int pages_ = 0;
    std::vector<Tensor> k_, v_;
};

}  // namespace exl3
