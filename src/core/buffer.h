#pragma once
#include <cstddef>
#include <utility>

namespace exl3 {

/// Owns one allocation or mapped range. Move-only; freed in the destructor.
class Buffer {
public:
    using Free = void (*)(void* data, size_t bytes, void* ctx);
    Buffer() = default;
    Buffer(void* data, size_t bytes, Free free, void* ctx)
        : data_(data), bytes_(bytes), free_(free), ctx_(ctx) {}
    Buffer(Buffer&& o) noexcept { swap(o); }
    Buffer& operator=(Buffer&& o) noexcept {
        swap(o);
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (free_) free_(data_, bytes_, ctx_);
    }
    void* data() const { return data_; }
    size_t bytes() const { return bytes_; }

private:
    void swap(Buffer& o) noexcept {
        std::swap(data_, o.data_);
        std::swap(bytes_, o.bytes_);
        std::swap(free_, o.free_);
        std::swap(ctx_, o.ctx_);
    }
    void* data_ = nullptr;
    size_t bytes_ = 0;
    Free free_ = nullptr;
    void* ctx_ = nullptr;
};

/// 64-byte aligned host memory. Throws Error{out_of_memory} naming the size.
Buffer allocate_host(size_t bytes);

}  // namespace exl3
