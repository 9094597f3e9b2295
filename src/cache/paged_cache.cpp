#include "cache/paged_cache.h"

#include <string>

#include "ops/kv_group.h"

namespace exl3 {

KvLayout KvLayout::only(int layer) const {
    KvLayout l;
    l.layers.resize(layers.size());
    l.layers[static_cast<size_t>(layer)] = layers[static_cast<size_t>(layer)];
    return l;
}

namespace {

// Bytes of one head of one token.
uint64_t head_bytes(int dim, int bits) {
    if (bits == 16) return size_of(DType::f16) * static_cast<uint64_t>(dim);
    return static_cast<uint64_t>(dim / kKvGroup) *
           (static_cast<uint64_t>(bits) * size_of(DType::u32) + size_of(DType::f16));
}

}  // namespace

uint64_t KvLayout::bytes_per_token(KvBits bits) const {
    uint64_t n = 0;
    for (const Layer& l : layers)
        n += static_cast<uint64_t>(l.kv_heads) *
             (head_bytes(l.head_dim, bits.keys) +
              (l.latent ? 0 : head_bytes(l.head_dim, bits.values)));
    return n;
}

PagedCache::PagedCache(Device& device, const KvLayout& layout, int pages, KvBits bits)
    : pages_(pages) {
    EXL3_CHECK(is_kv_bits(bits.keys) && is_kv_bits(bits.values));
    const auto make = [&](const KvLayout::Layer& l, int plane_bits) -> Plane {
        const auto shape = [&](int64_t n) { return Shape{pages, kPageTokens, l.kv_heads, n}; };
        if (plane_bits == 16) return {device.make_tensor(DType::f16, shape(l.head_dim)), {}};
        const int groups = l.head_dim / kKvGroup;
        Tensor data = device.make_tensor(DType::u32, shape(groups * plane_bits));
        return {std::move(data), device.make_tensor(DType::f16, shape(groups))};
    };
    for (size_t i = 0; i < layout.layers.size(); ++i) {
        const KvLayout::Layer& l = layout.layers[i];
        if (l.kv_heads == 0) {
            k_.emplace_back();
            v_.emplace_back();
            continue;
        }
        if (bits != KvBits{} && l.head_dim % kKvGroup != 0)
            throw Error(Errc::unsupported, {},
                        "K/V cache of " + std::to_string(bits.keys) + "," +
                            std::to_string(bits.values) + " bits: layer " + std::to_string(i) +
                            " has heads of " + std::to_string(l.head_dim) +
                            " channels, needed a multiple of 32");
        k_.push_back(make(l, bits.keys));
        v_.push_back(l.latent ? k_.back() : make(l, bits.values));
    }
}

void PagedCache::copy_page(Stream& s, int from, int to, int tokens) const {
    const auto copy = [&](const Tensor& t) {
        if (!t) return;
        const int64_t row = t.view.shape[2] * t.view.shape[3];  // elements of one token
        const auto rows = [&](int page) {
            auto* data =
                static_cast<std::byte*>(t.view.data) +
                int64_t{page} * kPageTokens * row * static_cast<int64_t>(size_of(t.view.dtype));
            return dense(data, t.view.dtype, {1, tokens * row});
        };
        s.copy(rows(from), rows(to));
    };
    for (const auto* planes : {&k_, &v_})
        for (const Plane& p : *planes) {
            copy(p.data);
            copy(p.scale);
        }
}

KvView PagedCache::layer(int i) const {
    const Plane &k = k_[static_cast<size_t>(i)], &v = v_[static_cast<size_t>(i)];
    return {.k = k.data.view, .v = v.data.view, .k_scale = k.scale.view, .v_scale = v.scale.view};
}

}  // namespace exl3
