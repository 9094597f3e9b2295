#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace exl3::cpu {

/// A loop over items of unequal cost, each of which can be cut into equal parts: threads get runs
/// of parts of the same total cost. For work whose results do not depend on where it is cut.
class UnevenLoop {
public:
    /// @param cost  of one part, in any unit
    void add(int64_t parts, int64_t cost) {
        items_.push_back({parts, cost, total_});
        total_ += parts * cost;
    }
    /// Calls fn(item, begin, end) for runs of parts that together are all of them.
    template <typename Fn>
    void run(ThreadPool& pool, const Fn& fn) const {
        const int64_t pieces = pool.threads();
        pool.parallel_for(pieces, 1, [&](int64_t piece, int64_t) {
            const int64_t from = total_ * piece / pieces, to = total_ * (piece + 1) / pieces;
            for (size_t i = 0; i < items_.size(); ++i) {
                const Item& item = items_[i];
                const int64_t begin = item.part_at(from), end = item.part_at(to);
                if (begin < end) fn(i, begin, end);
            }
        });
    }

private:
    struct Item {
        int64_t parts, cost, before;  // before: cost of all items in front
        /// The first part that starts at `at` or later.
        int64_t part_at(int64_t at) const {
            return at <= before ? 0 : std::min(parts, (at - before + cost - 1) / cost);
        }
    };
    std::vector<Item> items_;
    int64_t total_ = 0;
};

}  // namespace exl3::cpu
