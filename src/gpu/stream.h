#pragma once
#include <string>
#include <vector>

#include "core/device.h"
#include "gpu/vendor.h"

namespace exl3::gpu {

/// Throws Error{device} (or {out_of_memory}) that names what was done and the driver's words.
void require(cudaError_t status, const char* what);

/// Whether the current GPU runs the kernels of this build.
cudaError_t find_kernel();

/// A queue of one GPU. Copies from and to pageable memory have ended with the call's return.
class GpuStream final : public Stream {
public:
    GpuStream(Device& device, int index, int multiprocessors);
    ~GpuStream() override;
    void synchronize() override;
    void copy(ConstView from, View to) override;
    std::unique_ptr<Graph> capture(const std::function<void()>& step) override;

    /// Makes this stream's GPU the calling thread's.
    void enter() const;
    cudaStream_t handle() const { return handle_; }
    int multiprocessors() const { return multiprocessors_; }
    bool capturing() const { return capturing_; }
    /// At least `n` words that are zero; whoever uses them leaves zeros behind. The same memory
    /// every time, so one kernel at a time. Grows outside a capture only.
    uint32_t* zeros(size_t n);

private:
    int index_, multiprocessors_;
    cudaStream_t handle_ = nullptr;
    bool capturing_ = false;
    std::vector<Buffer> zeros_;  // the last one is in use; a graph may hold on to earlier ones
};

/// The GPU side of a stream; only this backend's op table leads here. Enters its GPU.
inline GpuStream& gpu_stream(Stream& s) {
    auto& g = static_cast<GpuStream&>(s);
    g.enter();
    return g;
}

}  // namespace exl3::gpu
