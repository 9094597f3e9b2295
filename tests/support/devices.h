#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backends.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "ops/ops.h"
#include "ref/ref.h"

namespace exl3::test {

struct NamedDevice {
    std::string name;
    std::unique_ptr<Device> device;
};

/// ref first, then the CPU at every tier of this machine, once on one thread and once on three,
/// then the GPUs.
inline std::vector<NamedDevice> all_devices() {
    std::vector<NamedDevice> v;
    v.push_back({"ref", ref::open()});
    const char* only = std::getenv("EXL3_TEST_DEVICES");  // "gpu": ref and the GPUs alone
    const bool cpus = !only || std::string_view(only) != "gpu";
    for (const cpu::Isa isa : cpus ? cpu::available_isas() : std::vector<cpu::Isa>())
        v.push_back(
            {"cpu " + std::string(cpu::name_of(isa)), cpu::open({.threads = 1, .isa = isa})});
    if (cpus) v.push_back({"cpu 3 threads", cpu::open({.threads = 3})});
    for (const GpuDescription& g : list_gpus())
        if (g.problem.empty()) v.push_back({g.device, open_device(g.device).value()});
    return v;
}
inline bool is_gpu(std::string_view device) {
    return !gpu_backend().empty() && device.starts_with(gpu_backend());
}

/// Runs a case on a device; false if it is a GPU without a kernel for one of the ops.
inline bool runs_on(const std::string& device, const std::function<void()>& run) {
    try {
        run();
        return true;
    } catch (const Error& e) {
        if (is_gpu(device) && e.code() == Errc::unsupported) return false;
        throw;
    }
}

/// The f32 values of a view, in host memory.
inline std::vector<float> values_of(Stream& s, const View& v) {
    std::vector<float> out(static_cast<size_t>(v.shape.numel()));
    s.synchronize();
    s.copy(v, dense(out.data(), DType::f32, v.shape));
    s.synchronize();
    return out;
}

/// Makes the inputs of one case: the same numbers on every device.
class Arena {
public:
    Arena(Device& device, Stream& stream, uint64_t seed)
        : device_(device), stream_(stream), random_(seed) {}
    View zeros(Shape shape, DType dtype = DType::f32) {
        return put(std::vector<float>(static_cast<size_t>(shape.numel())), shape, dtype);
    }
    View normal(Shape shape, DType dtype = DType::f32, double scale = 1) {
        std::vector<float> v(static_cast<size_t>(shape.numel()));
        for (float& x : v) x = static_cast<float>(scale * random_.normal());
        return put(v, shape, dtype);
    }
    View ints(const std::vector<int32_t>& v, Shape shape) {
        return raw(v.data(), DType::i32, shape);
    }
    /// Random bits, e.g. trellis words: any bit pattern is a valid tile.
    View bits(Shape shape, DType dtype) {
        std::vector<uint8_t> v(static_cast<size_t>(shape.numel()) * size_of(dtype));
        for (auto& x : v) x = static_cast<uint8_t>(random_.next());
        return raw(v.data(), dtype, shape);
    }
    View raw(const void* data, DType dtype, Shape shape) {
        tensors_.push_back(device_.make_tensor(dtype, shape));
        stream_.copy(dense(data, dtype, shape), tensors_.back().view);
        return tensors_.back().view;
    }
    /// Overwrites a dense f32 view.
    void set(View to, const std::vector<float>& v) {
        stream_.copy(dense(v.data(), DType::f32, to.shape), to);
        stream_.synchronize();
    }
    Random& random() { return random_; }

private:
    View put(const std::vector<float>& v, Shape shape, DType dtype) {
        if (dtype == DType::f32) return raw(v.data(), dtype, shape);
        std::vector<uint16_t> h(v.size());
        for (size_t i = 0; i < v.size(); ++i)
            h[i] = dtype == DType::f16 ? to_f16(v[i]).bits : to_bf16(v[i]).bits;
        return raw(h.data(), dtype, shape);
    }
    Device& device_;
    Stream& stream_;
    Random random_;
    std::vector<Tensor> tensors_;
};

struct Tolerance {
    double rtol = 1e-5;   ///< of the largest magnitude in the reference result
    double gpu_rtol = 0;  ///< on a GPU, where that is more: results of f16 matrix units
};

/// Runs `make` (which returns an f32 view) on every device and compares with ref.
inline void expect_same_on_all_devices(Tolerance tolerance,
                                       const std::function<View(Stream&, Arena&)>& make) {
    std::vector<float> want;
    for (auto& [name, device] : all_devices()) {
        const auto stream = device->make_stream();
        Arena arena(*device, *stream, 1);
        View y;
        if (!runs_on(name, [&] { y = make(*stream, arena); })) continue;
        const std::vector<float> got = values_of(*stream, y);
        if (want.empty()) want = got;
        double scale = 1e-30;
        for (const float w : want) scale = std::max(scale, std::fabs(static_cast<double>(w)));
        ASSERT_EQ(got.size(), want.size());
        const double rtol =
            is_gpu(name) ? std::max(tolerance.rtol, tolerance.gpu_rtol) : tolerance.rtol;
        for (size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], want[i], rtol * scale)
                << name << ", shape " << to_string(y.shape) << ", element " << i;
    }
}

}  // namespace exl3::test
