#pragma once
#include <cstdint>

#include "base/thread_pool.h"

namespace exl3::cpu {

/// Calls fn(row, begin, end) for runs of columns that together cover (rows, dim), on the pool. Long
/// rows are cut too: one row of a wide model is work for several threads.
template <typename Fn>
void for_each_run(ThreadPool& pool, int64_t rows, int64_t dim, const Fn& fn) {
    constexpr int64_t kRun = 2048, kPiece = 16384;
    if (rows <= 0 || dim <= 0) return;
    const int64_t runs = (dim + kRun - 1) / kRun, size = dim < kRun ? dim : kRun;
    pool.parallel_for(rows * runs, kPiece / size / (rows == 1 ? 4 : 1) + 1,
                      [&](int64_t i, int64_t end) {
                          for (; i < end; ++i) {
                              const int64_t begin = i % runs * kRun;
                              fn(i / runs, begin, begin + kRun < dim ? begin + kRun : dim);
                          }
                      });
}

}  // namespace exl3::cpu
