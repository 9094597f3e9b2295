#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace exl3 {

struct OpTable;
class Stream;

/// One physical device: its memory, its streams, its op table. Outlives its buffers and streams.
class Device {
public:
    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;
    virtual std::string name() const = 0;  ///< "ref", "cpu", "cuda:0"
    /// Device memory, 64-byte aligned. Throws Error{out_of_memory}.
    virtual Buffer allocate(size_t bytes) = 0;
    virtual std::unique_ptr<Stream> make_stream() = 0;
    virtual const OpTable& ops() const = 0;

    /// A fresh tensor of `shape`, contents undefined. Throws Error{out_of_memory}.
    Tensor make_tensor(DType dtype, Shape shape);
};

/// Scratch memory of one stream: a bump arena of stable addresses that grows by whole blocks.
/// What is taken inside a Scope is given back when the Scope ends.
class Workspace {
public:
    explicit Workspace(Device& device) : device_(device) {}
    /// Uninitialised scratch, 64-byte aligned, valid until the enclosing Scope ends.
    View take(DType dtype, Shape shape);

    class Scope {
    public:
        explicit Scope(Workspace& w) : w_(w), block_(w.block_), used_(w.used_) {}
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope() {
            w_.block_ = block_;
            w_.used_ = used_;
        }

    private:
        Workspace& w_;
        size_t block_, used_;
    };
    /// `const auto scope = s.workspace().scope();` at the top of whoever takes scratch.
    Scope scope() { return Scope(*this); }
    size_t bytes() const;  ///< bytes held, for the memory plan

private:
    Device& device_;
    std::vector<Buffer> blocks_;
    size_t block_ = 0, used_ = 0;
};

/// A recorded step of a stream, to be run again. Goes before its stream.
class Graph {
public:
    Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    virtual ~Graph() = default;
    virtual void launch() = 0;  ///< queues the step once more on its stream
};

/// An in-order queue of work on one device. Not thread-safe; one owner at a time.
class Stream {
public:
    explicit Stream(Device& device) : device_(device), workspace_(device) {}
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    virtual ~Stream() = default;
    virtual void synchronize() = 0;
    /// Copies rows between views of equal shape and dtype; either side may be host memory.
    virtual void copy(ConstView from, View to) = 0;
    /// Runs `step`, which only queues work on this stream, and records it. A GPU keeps the kernels
    /// with the addresses they were given, so whatever changes from run to run is read from device
    /// memory; other devices keep the closure.
    virtual std::unique_ptr<Graph> capture(const std::function<void()>& step);
    Device& device() const { return device_; }
    Workspace& workspace() { return workspace_; }

private:
    Device& device_;
    Workspace workspace_;
};

/// The stream of a device whose memory is the host's: copies are plain, everything is in order.
class HostStream final : public Stream {
public:
    using Stream::Stream;
    void synchronize() override {}
    void copy(ConstView from, View to) override;
};

}  // namespace exl3
