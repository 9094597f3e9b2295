#pragma once

#include "base/thread_pool.h"

namespace exl3::cpu {

/// What the memory of this machine gives to all threads together, in bytes per second.
struct MemoryBandwidth {
    double read = 0;  ///< bytes read
    double copy = 0;  ///< bytes read plus bytes written of a plain copy
};

/// Best of a few sweeps over two blocks of 256 MiB, which no cache holds; about half a second.
/// Throws Error{out_of_memory}.
MemoryBandwidth measure_bandwidth(ThreadPool& pool);

}  // namespace exl3::cpu
