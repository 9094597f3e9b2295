// The GPU as a Device: memory, streams, graphs, op table.
#include "gpu/gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/stream.h"
#include "ops/ops.h"

namespace exl3::gpu {

#define EXL3_DECL_0(name, Args)
#define EXL3_DECL_1(name, Args) void name(Stream&, const Args&);
#define EXL3_OP(name, Args, cpu, gpu) EXL3_DECL_##gpu(name, Args)
#include "ops/ops.def"
#undef EXL3_OP

namespace {

[[noreturn]] void refuse_op(const char* name) {
    throw Error(Errc::unsupported, {},
                fmt::format("op {} has no GPU kernel, which this model or command needs; use "
                            "--device cpu",
                            name));
}

#define EXL3_PICK_0(name, Args) [](Stream&, const Args&) { refuse_op(#name); }
#define EXL3_PICK_1(name, Args) gpu::name

const OpTable& table() {
    static const OpTable t = {
#define EXL3_OP(name, Args, cpu, gpu) .name = EXL3_PICK_##gpu(name, Args),
#include "ops/ops.def"
#undef EXL3_OP
    };
    return t;
}

class GpuGraph final : public Graph {
public:
    GpuGraph(GpuStream& stream, cudaGraphExec_t exec) : stream_(stream), exec_(exec) {}
    ~GpuGraph() override { cudaGraphExecDestroy(exec_); }
    void launch() override {
        stream_.enter();
        require(cudaGraphLaunch(exec_, stream_.handle()), "launch of a graph");
    }

private:
    GpuStream& stream_;
    cudaGraphExec_t exec_;
};

struct GpuDevice final : Device {
    GpuDevice(int index_, int multiprocessors_)
        : index(index_), multiprocessors(multiprocessors_) {}
    std::string name() const override { return fmt::format(EXL3_GPU_NAME ":{}", index); }
    Buffer allocate(size_t bytes) override {
        require(cudaSetDevice(index), "choice of a GPU");
        void* p = nullptr;
        const cudaError_t status = cudaMalloc(&p, std::max<size_t>(bytes, 1));
        if (status == cudaErrorMemoryAllocation) {
            cudaGetLastError();  // the error is sticky until it is read
            size_t free = 0, total = 0;
            cudaMemGetInfo(&free, &total);
            throw Error(
                Errc::out_of_memory, {},
                fmt::format("{}: {} bytes needed, {} of {} free", name(), bytes, free, total));
        }
        require(status, "allocation of device memory");
        return {p, bytes, [](void* data, size_t, void*) { cudaFree(data); }, nullptr};
    }
    std::unique_ptr<Stream> make_stream() override {
        return std::make_unique<GpuStream>(*this, index, multiprocessors);
    }
    const OpTable& ops() const override { return table(); }

    int index, multiprocessors;
};

std::string problem_of(int index) {
    if (cudaSetDevice(index) != cudaSuccess) return "the driver cannot use it";
    const cudaError_t status = find_kernel();
    if (status == cudaSuccess) return "";
    return fmt::format("this build's kernels do not run on it ({})", cudaGetErrorString(status));
}

}  // namespace

void require(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    throw Error(Errc::device, {}, fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

GpuStream::GpuStream(Device& device, int index, int multiprocessors)
    : Stream(device), index_(index), multiprocessors_(multiprocessors) {
    enter();
    require(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "creation of a stream");
    zeros(1 << 18);
}

GpuStream::~GpuStream() {
    cudaSetDevice(index_);
    cudaStreamSynchronize(handle_);  // memory may be freed next
    cudaStreamDestroy(handle_);
}

void GpuStream::enter() const {
    require(cudaSetDevice(index_), "choice of a GPU");
}

void GpuStream::synchronize() {
    enter();
    require(cudaStreamSynchronize(handle_), "work on the GPU");
}

void GpuStream::copy(ConstView from, View to) {
    EXL3_CHECK(from.dtype == to.dtype && from.shape == to.shape);
    enter();
    const size_t element = size_of(from.dtype), rows = static_cast<size_t>(from.rows());
    const size_t row = static_cast<size_t>(from.shape[-1]) * element;
    if (rows == 0 || row == 0) return;
    const auto from_pitch = static_cast<size_t>(from.row_stride) * element,
               to_pitch = static_cast<size_t>(to.row_stride) * element;
    if (rows == 1 || (from_pitch == row && to_pitch == row))
        require(cudaMemcpyAsync(to.data, from.data, rows * row, cudaMemcpyDefault, handle_),
                "copy of memory");
    else
        require(cudaMemcpy2DAsync(to.data, to_pitch, from.data, from_pitch, row, rows,
                                  cudaMemcpyDefault, handle_),
                "copy of rows");
}

std::unique_ptr<Graph> GpuStream::capture(const std::function<void()>& step) {
    enter();
    step();  // allocates scratch, loads kernels, and is the first run
    require(cudaStreamBeginCapture(handle_, cudaStreamCaptureModeRelaxed), "capture of a step");
    capturing_ = true;
    cudaGraph_t graph = nullptr;
    try {
        step();
    } catch (...) {
        capturing_ = false;
        cudaStreamEndCapture(handle_, &graph);
        if (graph) cudaGraphDestroy(graph);
        throw;
    }
    capturing_ = false;
    require(cudaStreamEndCapture(handle_, &graph), "capture of a step");
    cudaGraphExec_t exec = nullptr;
#if defined(__HIP_PLATFORM_AMD__)
    const cudaError_t status = hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
#else
    const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
#endif
    cudaGraphDestroy(graph);
    require(status, "instantiation of a graph");
    return std::make_unique<GpuGraph>(*this, exec);
}

uint32_t* GpuStream::zeros(size_t n) {
    const size_t bytes = n * sizeof(uint32_t);
    if (zeros_.empty() || zeros_.back().bytes() < bytes) {
        EXL3_CHECK(!capturing_, "memory may not grow while a step is captured");
        zeros_.push_back(device().allocate(std::max(bytes, size_t{1} << 18)));
        require(cudaMemsetAsync(zeros_.back().data(), 0, zeros_.back().bytes(), handle_),
                "clearing of memory");
    }
    return static_cast<uint32_t*>(zeros_.back().data());
}

std::vector<GpuInfo> list() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
        return {};
    }
    std::vector<GpuInfo> all;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp p{};
        GpuInfo info;
        if (cudaGetDeviceProperties(&p, i) == cudaSuccess) {
            info.name = p.name;
            info.architecture = fmt::format("sm_{}{}", p.major, p.minor);
            info.multiprocessors = p.multiProcessorCount;
            info.problem = problem_of(i);
            size_t free = 0, total = 0;
            if (info.problem.empty() && cudaMemGetInfo(&free, &total) != cudaSuccess)
                info.problem = "the driver does not tell its memory";
            info.memory_free = free;
            info.memory_total = total ? total : p.totalGlobalMem;
        } else {
            info.problem = "the driver does not describe it";
        }
        cudaGetLastError();
        all.push_back(std::move(info));
    }
    return all;
}

std::unique_ptr<Device> open(int index) {
    const std::vector<GpuInfo> all = list();
    if (index < 0 || index >= static_cast<int>(all.size()))
        throw Error(Errc::invalid_argument, {},
                    all.empty()
                        ? fmt::format("--device: " EXL3_GPU_NAME
                                      ":{} found, but no GPU driver or GPU is here",
                                      index)
                        : fmt::format("--device: " EXL3_GPU_NAME ":{} found, needed 0 to {}", index,
                                      all.size() - 1));
    const GpuInfo& info = all[static_cast<size_t>(index)];
    if (!info.problem.empty())
        throw Error(Errc::device, {},
                    fmt::format(EXL3_GPU_NAME ":{} ({}): {}", index, info.name, info.problem));
    return std::make_unique<GpuDevice>(index, info.multiprocessors);
}

}  // namespace exl3::gpu
