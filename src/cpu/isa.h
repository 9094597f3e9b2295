// Compiles the including file once per instruction set; see cpu/rms_norm.cpp for the shape.
// A file defines EXL3_ISA_FILE to its own path, optionally EXL3_ISA_TIERS (default 3: scalar, avx2,
// avx512; 4 adds avx512vnni, 5 also avx512bf16), includes this header first, then writes its
// kernels between EXL3_ISA_BEGIN and EXL3_ISA_END. No source file is built with -mavx*, so code
// outside the regions (and every inline function of the standard library) stays baseline: kernels
// between the marks call no standard-library templates.
#ifndef EXL3_CPU_ISA_ONCE
#define EXL3_CPU_ISA_ONCE
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cpu/cpu.h"

#ifndef EXL3_ISA_TIERS
#define EXL3_ISA_TIERS 3
#endif
#define EXL3_PRAGMA_(x) _Pragma(#x)
#if defined(__clang__)
#define EXL3_TARGET_BEGIN(t) \
    EXL3_PRAGMA_(clang attribute push(__attribute__((target(t))), apply_to = function))
#define EXL3_TARGET_END _Pragma("clang attribute pop")
#else
#define EXL3_TARGET_BEGIN(t) _Pragma("GCC push_options") EXL3_PRAGMA_(GCC target(t))
#define EXL3_TARGET_END _Pragma("GCC pop_options")
#endif
#define EXL3_TARGET_AVX2 "avx2,fma,f16c"
#define EXL3_TARGET_AVX512 "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq"
#define EXL3_TARGET_VNNI EXL3_TARGET_AVX512 ",avx512vnni,avx512vbmi,avx512vbmi2"
#define EXL3_TARGET_BF16 EXL3_TARGET_VNNI ",avx512bf16"
// For the building blocks of an unrolled loop, whose registers must not pass through memory.
#define EXL3_INLINE __attribute__((always_inline)) inline

namespace exl3::cpu {
/// std::min for kernels: a template of the standard library could be instantiated for one tier and
/// linked into another.
constexpr int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}
}  // namespace exl3::cpu

// The version of `fn` for the device of stream s.
#if EXL3_ISA_TIERS == 5
#define EXL3_ISA_PICK(s, fn)                                                   \
    (::exl3::cpu::isa_of(s) == ::exl3::cpu::Isa::avx512bf16   ? avx512bf16::fn \
     : ::exl3::cpu::isa_of(s) == ::exl3::cpu::Isa::avx512vnni ? avx512vnni::fn \
     : ::exl3::cpu::isa_of(s) == ::exl3::cpu::Isa::avx512     ? avx512::fn     \
     : ::exl3::cpu::isa_of(s) == ::exl3::cpu::Isa::avx2       ? avx2::fn       \
                                                              : scalar::fn)
#elif EXL3_ISA_TIERS == 4
#define EXL3_ISA_PICK(s, fn)                                                 \
    (::exl3::cpu::isa_of(s) >= ::exl3::cpu::Isa::avx512vnni ? avx512vnni::fn \
     : ::exl3::cpu::isa_of(s) == ::exl3::cpu::Isa::avx512   ? avx512::fn     \
     : ::exl3::cpu::isa_of(s) == ::exl3::cpu::Isa::avx2     ? avx2::fn       \
                                                            : scalar::fn)
#else
#define EXL3_ISA_PICK(s, fn)                                         \
    (::exl3::cpu::isa_of(s) >= ::exl3::cpu::Isa::avx512 ? avx512::fn \
     : ::exl3::cpu::isa_of(s) == ::exl3::cpu::Isa::avx2 ? avx2::fn   \
                                                        : scalar::fn)
#endif
#endif

#ifndef EXL3_ISA_PASS
#define EXL3_ISA_PASS 0
#define EXL3_ISA_NS scalar
#define EXL3_ISA_BEGIN namespace exl3::cpu::EXL3_ISA_NS {
#define EXL3_ISA_END }
#include EXL3_ISA_FILE
#undef EXL3_ISA_PASS
#undef EXL3_ISA_NS
#undef EXL3_ISA_BEGIN
#undef EXL3_ISA_END

#define EXL3_ISA_PASS 1
#define EXL3_ISA_NS avx2
#define EXL3_ISA_BEGIN EXL3_TARGET_BEGIN(EXL3_TARGET_AVX2) namespace exl3::cpu::EXL3_ISA_NS {
#define EXL3_ISA_END \
    }                \
    EXL3_TARGET_END
#include EXL3_ISA_FILE
#undef EXL3_ISA_PASS
#undef EXL3_ISA_NS
#undef EXL3_ISA_BEGIN

#if EXL3_ISA_TIERS >= 4
#define EXL3_ISA_PASS 2
#define EXL3_ISA_NS avx512
#define EXL3_ISA_BEGIN EXL3_TARGET_BEGIN(EXL3_TARGET_AVX512) namespace exl3::cpu::EXL3_ISA_NS {
#include EXL3_ISA_FILE
#undef EXL3_ISA_PASS
#undef EXL3_ISA_NS
#undef EXL3_ISA_BEGIN

#define EXL3_ISA_PASS 3
#define EXL3_ISA_NS avx512vnni
#define EXL3_ISA_BEGIN EXL3_TARGET_BEGIN(EXL3_TARGET_VNNI) namespace exl3::cpu::EXL3_ISA_NS {
#if EXL3_ISA_TIERS == 5
#include EXL3_ISA_FILE
#undef EXL3_ISA_PASS
#undef EXL3_ISA_NS
#undef EXL3_ISA_BEGIN

#define EXL3_ISA_PASS 4
#define EXL3_ISA_NS avx512bf16
#define EXL3_ISA_BEGIN EXL3_TARGET_BEGIN(EXL3_TARGET_BF16) namespace exl3::cpu::EXL3_ISA_NS {
#endif
#else
#define EXL3_ISA_PASS 2
#define EXL3_ISA_NS avx512
#define EXL3_ISA_BEGIN EXL3_TARGET_BEGIN(EXL3_TARGET_AVX512) namespace exl3::cpu::EXL3_ISA_NS {
#endif
#define EXL3_ISA_LAST 1
#endif

// Vector types of the current pass. Free functions throughout: GCC skips target pragmas on friends.
#if EXL3_ISA_PASS == 0 && !defined(EXL3_SIMD_SCALAR)
#define EXL3_SIMD_SCALAR
#include "cpu/simd_scalar.h"
#elif EXL3_ISA_PASS == 1 && !defined(EXL3_SIMD_AVX2)
#define EXL3_SIMD_AVX2
EXL3_TARGET_BEGIN(EXL3_TARGET_AVX2)
#include "cpu/simd_avx2.h"
EXL3_TARGET_END
#elif EXL3_ISA_PASS >= 2 && !defined(EXL3_SIMD_AVX512)
#define EXL3_SIMD_AVX512
EXL3_TARGET_BEGIN(EXL3_TARGET_AVX512)
#include "cpu/simd_avx512.h"
EXL3_TARGET_END
#endif
#if EXL3_ISA_PASS == 3
namespace exl3::cpu::avx512vnni {
using namespace exl3::cpu::avx512simd;
}
#elif EXL3_ISA_PASS == 4
namespace exl3::cpu::avx512bf16 {
using namespace exl3::cpu::avx512simd;
}
#endif
