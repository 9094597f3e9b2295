#include "core/device.h"

#include <algorithm>
#include <cstring>

namespace exl3 {

Tensor Device::make_tensor(DType dtype, Shape shape) {
    auto bytes = std::make_shared<const Buffer>(
        allocate(static_cast<size_t>(shape.numel()) * size_of(dtype)));
    const View view = dense(bytes->data(), dtype, shape);
    return {std::move(bytes), view};
}

View Workspace::take(DType dtype, Shape shape) {
    constexpr size_t kAlign = 64, kBlock = size_t{1} << 20;
    const size_t need =
        (static_cast<size_t>(shape.numel()) * size_of(dtype) + kAlign - 1) / kAlign * kAlign;
    while (block_ < blocks_.size() && used_ + need > blocks_[block_].bytes()) {
        ++block_;
        used_ = 0;
    }
    if (block_ == blocks_.size()) {
        const size_t last = blocks_.empty() ? kBlock : 2 * blocks_.back().bytes();
        blocks_.push_back(device_.allocate(std::max({need, std::min(last, size_t{1} << 28)})));
        used_ = 0;
    }
    void* p = static_cast<std::byte*>(blocks_[block_].data()) + used_;
    used_ += need;
    return dense(p, dtype, shape);
}

size_t Workspace::bytes() const {
    size_t n = 0;
    for (const Buffer& b : blocks_) n += b.bytes();
    return n;
}

namespace {

struct ClosureGraph final : Graph {
    explicit ClosureGraph(std::function<void()> s) : step(std::move(s)) {}
    void launch() override { step(); }
    std::function<void()> step;
};

}  // namespace

std::unique_ptr<Graph> Stream::capture(const std::function<void()>& step) {
    step();
    return std::make_unique<ClosureGraph>(step);
}

void HostStream::copy(ConstView from, View to) {
    EXL3_CHECK(from.dtype == to.dtype && from.shape == to.shape);
    const size_t bytes = static_cast<size_t>(from.shape[-1]) * size_of(from.dtype);
    for (int64_t r = 0; r < from.rows(); ++r)
        std::memcpy(
            static_cast<std::byte*>(to.data) + r * to.row_stride * size_of(to.dtype),
            static_cast<const std::byte*>(from.data) + r * from.row_stride * size_of(from.dtype),
            bytes);
}

}  // namespace exl3
