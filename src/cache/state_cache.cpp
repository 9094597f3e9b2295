#include "cache/state_cache.h"

namespace exl3 {
namespace {

// One slot of a (slots, ...) tensor as a row of floats.
View slot_of(const Tensor& t, int slot) {
    const Shape& shape = t.view.shape;
    const int64_t floats = shape.numel() / shape[0];
    return slice_rows(reshape(t.view, {shape[0], floats}), slot, 1);
}

}  // namespace

size_t StateLayout::Layer::bytes() const {
    const int64_t floats = int64_t{window} * channels + int64_t{heads} * key_dim * value_dim;
    return sizeof(float) * static_cast<size_t>(floats);
}

StateLayout StateLayout::only(int layer) const {
    StateLayout l;
    l.layers.resize(layers.size());
    l.layers[static_cast<size_t>(layer)] = layers[static_cast<size_t>(layer)];
    return l;
}

size_t StateLayout::bytes_per_slot() const {
    size_t n = 0;
    for (const Layer& l : layers) n += l.bytes();
    return n;
}

StateCache::StateCache(Device& device, const StateLayout& layout, int slots)
    : layout_(layout), slots_(slots) {
    const auto make = [&](const Shape& shape) {
        return shape.numel() > 0 ? device.make_tensor(DType::f32, shape) : Tensor();
    };
    for (const auto& l : layout.layers) {
        window_.push_back(make({slots, l.window, l.channels}));
        memory_.push_back(make({slots, l.heads, l.key_dim, l.value_dim}));
    }
}

StateView StateCache::layer(int i) const {
    return {window_[static_cast<size_t>(i)].view, memory_[static_cast<size_t>(i)].view};
}

std::vector<View> StateCache::parts(int slot) const {
    EXL3_CHECK(slot >= 0 && slot < slots_);
    std::vector<View> all;
    for (size_t i = 0; i < window_.size(); ++i)
        for (const Tensor* t : {&window_[i], &memory_[i]})
            if (*t) all.push_back(slot_of(*t, slot));
    return all;
}

void StateCache::reset(Stream& s, int slot) {
    for (const View& part : parts(slot)) {
        const std::vector<float> zeros(static_cast<size_t>(part.shape[1]));
        s.copy(dense(zeros.data(), DType::f32, part.shape), part);
        s.synchronize();  // the zeros go away here
    }
}

void StateCache::copy(Stream& s, int from, int to) {
    if (from == to) return;
    const std::vector<View> source = parts(from), target = parts(to);
    for (size_t i = 0; i < source.size(); ++i) s.copy(source[i], target[i]);
}

void StateCache::save(Stream& s, int slot, std::span<std::byte> to) const {
    EXL3_CHECK(to.size() == bytes_per_slot());
    std::byte* at = to.data();
    for (const View& part : parts(slot)) {
        s.copy(part, dense(at, DType::f32, part.shape));
        at += sizeof(float) * static_cast<size_t>(part.shape[1]);
    }
}

void StateCache::restore(Stream& s, int slot, std::span<const std::byte> from) {
    EXL3_CHECK(from.size() == bytes_per_slot());
    const std::byte* at = from.data();
    for (const View& part : parts(slot)) {
        s.copy(dense(at, DType::f32, part.shape), part);
        at += sizeof(float) * static_cast<size_t>(part.shape[1]);
    }
}

}  // namespace exl3
