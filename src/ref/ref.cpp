#include "ref/ref.h"

#include "ops/ops.h"

namespace exl3::ref {

#define EXL3_OP(name, Args, cpu, gpu) void name(Stream&, const Args&);
#include "ops/ops.def"
#undef EXL3_OP

const OpTable& table() {
    static const OpTable t = {
#define EXL3_OP(name, Args, cpu, gpu) .name = name,
#include "ops/ops.def"
#undef EXL3_OP
    };
    return t;
}

namespace {

struct RefDevice final : Device {
    std::string name() const override { return "ref"; }
    Buffer allocate(size_t bytes) override { return allocate_host(bytes); }
    std::unique_ptr<Stream> make_stream() override { return std::make_unique<HostStream>(*this); }
    const OpTable& ops() const override { return table(); }
};

}  // namespace

std::unique_ptr<Device> open() {
    return std::make_unique<RefDevice>();
}

}  // namespace exl3::ref
