#pragma once
#include "gpu/vendor.h"
#include "ops/attention.h"

namespace exl3::gpu {

/// SequencesView as kernels read it.
struct SequencesOnGpu {
    const int32_t *q_start = nullptr, *kv_len = nullptr, *pages = nullptr;
    int64_t page_stride = 0;
    int count = 0;

    explicit SequencesOnGpu(const SequencesView& v)
        : q_start(v.q_start.as<int32_t>()),
          kv_len(v.kv_len.as<int32_t>()),
          pages(v.pages.as<int32_t>()),
          page_stride(v.pages.row_stride),
          count(static_cast<int>(v.kv_len.shape[0])) {}

    /// The sequence of a batch row; -1 past the last. Sequences without rows are passed over.
    __device__ int of_row(int row) const {
        if (row >= q_start[count]) return -1;
        int low = 0, high = count - 1;
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (q_start[middle] <= row)
                low = middle;
            else
                high = middle - 1;
        }
        return low;
    }
    /// Position of batch row r of sequence s.
    __device__ int position(int s, int r) const { return kv_len[s] - q_start[s + 1] + r; }
    /// Row of the cache, counted over all pages, of position t of sequence s.
    __device__ int64_t slot(int s, int t) const {
        return static_cast<int64_t>(pages[s * page_stride + t / kPageTokens]) * kPageTokens +
               t % kPageTokens;
    }
};

}  // namespace exl3::gpu
