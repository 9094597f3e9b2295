#pragma once
#include <list>
#include <map>
#include <vector>

#include "cache/page_table.h"
#include "cache/state_cache.h"

namespace exl3 {

/// The recurrent states of running jobs, and copies of earlier ones in host memory that later jobs
/// can start from. A copy belongs to the end of a page and goes by that page's name.
class StateStore {
public:
    /// @param host_bytes  memory for copies; the least recently used ones make room
    /// Throws Error{out_of_memory}.
    StateStore(Stream& s, const StateLayout& layout, int slots, size_t host_bytes);

    const StateCache& cache() const { return cache_; }
    int take_slot();  ///< there is one for every running job
    void release_slot(int slot) { free_.push_back(slot); }

    bool has(const PageName& name) const { return copies_.contains(name); }
    /// Keeps the state in a slot as that after the page `name`.
    void save(const PageName& name, int slot);
    /// Fills a slot with the state after the page `name`, of which there is a copy.
    void restore(const PageName& name, int slot);

private:
    struct Copy {
        PageName name;
        std::vector<std::byte> state;
    };
    Stream& stream_;
    StateCache cache_;
    size_t most_copies_;
    std::vector<int> free_;
    std::list<Copy> order_;  ///< least recently used first
    std::map<PageName, std::list<Copy>::iterator> copies_;
};

}  // namespace exl3
