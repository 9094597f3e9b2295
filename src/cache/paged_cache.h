#pragma once
#include <vector>

#include "core/device.h"
#include "ops/attention.h"

namespace exl3 {

/// What each layer keeps per token. Layers without heads keep nothing.
struct KvLayout {
    struct Layer {
        int kv_heads = 0, head_dim = 0;
        bool latent = false;  ///< values are the keys, stored once (multi-head latent attention)
    };
    std::vector<Layer> layers;

    /// The same layout with every layer but one empty: for work that goes layer by layer.
    KvLayout only(int layer) const;
    /// Keys and values of one token over all layers.
    uint64_t bytes_per_token(KvBits bits = {}) const;
};

/// Pages needed for so many tokens.
constexpr int pages_for(int64_t tokens) {
    return static_cast<int>((tokens + kPageTokens - 1) / kPageTokens);
}

/// The keys and values behind a page table: for each layer, `pages` pages of 256 tokens.
class PagedCache {
public:
    /// Throws Error{out_of_memory}, or Error{unsupported} naming the first layer whose heads are no
    /// multiple of 32 channels when `bits` asks for a quantized cache.
    PagedCache(Device& device, const KvLayout& layout, int pages, KvBits bits = {});
    KvView layer(int i) const;  ///< empty views for a layer that keeps nothing
    int pages() const { return pages_; }
    /// Copies the first `tokens` tokens of one page to another, in every layer.
    void copy_page(Stream& s, int from, int to, int tokens) const;

private:
    int pages_ = 0;
    struct Plane {
        Tensor data, scale;
    };
    std::vector<Plane> k_, v_;
};

}  // namespace exl3
