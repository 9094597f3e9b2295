#pragma once
#include "core/device.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/embed.h"
#include "ops/encode.h"
#include "ops/exl3.h"
#include "ops/gemm.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "ops/recurrence.h"
#include "ops/rope.h"

namespace exl3 {

/// One function pointer per line of ops.def.
struct OpTable {
#define EXL3_OP(name, Args, cpu, gpu) void (*name)(Stream&, const Args&) = nullptr;
#include "ops/ops.def"
#undef EXL3_OP
};

/// What a model calls: checks the arguments, then runs the stream's device.
namespace ops {
#define EXL3_OP(name, Args, cpu, gpu)            \
    inline void name(Stream& s, const Args& a) { \
        check(a);                                \
        s.device().ops().name(s, a);             \
    }
#include "ops/ops.def"
#undef EXL3_OP
}  // namespace ops

}  // namespace exl3
