#include "cache/paged_cache.h"

#include <cstring>

namespace exl3 {

KvLayout KvLayout::only(int layer) const {
    KvLayout l;
    l.layers.resize(layers.size());
    l.layers[static_cast<size_t>(layer)] = layers[static_cast<size_t>(layer)];
    return l;
}

uint64_t KvLayout::bytes_per_token() const {
    uint64_t n = 0;
    for (const Layer& l : layers) n += uint64_t{2} * size_of(DType::f16) * l.kv_heads * l.head_dim;
    return n;
}

PagedCache::PagedCache(Device& device, const KvLayout& layout, int pages) : pages_(pages) {
    for (const auto& l : layout.layers) {
        if (l.kv_heads == 0) {
            k_.emplace_back();
            v_.emplace_back();
            continue;
        }
        const Shape shape = {pages, kPageTokens, l.kv_heads, l.head_dim};
        k_.push_back(device.make_tensor(DType::f16, shape));
        v_.push_back(device.make_tensor(DType::f16, shape));
    }
}

KvView PagedCache::layer(int i) const {
    return {k_[static_cast<size_t>(i)].view, v_[static_cast<size_t>(i)].view};
}

}  // namespace exl3
