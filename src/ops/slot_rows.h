#pragma once
#include "ops/recurrence.h"

namespace exl3 {

/// The rows of one sequence of a batch; for backends whose memory is the host's.
struct SlotRows {
    int64_t begin = 0, end = 0;  ///< rows of the batch
    int64_t slot = 0;
    bool fresh = false;  ///< the state before is zero, whatever the slot holds
};

inline SlotRows slot_rows(const SlotsView& v, int64_t sequence) {
    const int32_t* start = v.q_start.as<int32_t>() + sequence;
    return {start[0], start[1], v.slots.as<int32_t>()[sequence],
            v.kv_len.as<int32_t>()[sequence] == start[1] - start[0]};
}

}  // namespace exl3
