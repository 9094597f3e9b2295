#include "gen/state_store.h"

namespace exl3 {

StateStore::StateStore(Stream& s, const StateLayout& layout, int slots, size_t host_bytes)
    : stream_(s),
      cache_(s.device(), layout, slots),
      most_copies_(host_bytes / layout.bytes_per_slot()) {
    for (int slot = slots; slot-- > 0;) free_.push_back(slot);
}

int StateStore::take_slot() {
    EXL3_CHECK(!free_.empty());
    const int slot = free_.back();
    free_.pop_back();
    return slot;
}

void StateStore::save(const PageName& name, int slot) {
    if (most_copies_ == 0 || has(name)) return;
    if (order_.size() >= most_copies_) {
        // The oldest one gives its memory to the new one.
        copies_.erase(order_.front().name);
        order_.splice(order_.end(), order_, order_.begin());
    } else {
        order_.push_back({name, std::vector<std::byte>(cache_.bytes_per_slot())});
    }
    Copy& copy = order_.back();
    copy.name = name;
    copies_[name] = std::prev(order_.end());
    cache_.save(stream_, slot, copy.state);
    stream_.synchronize();  // later the copy may be given up at any time
}

void StateStore::restore(const PageName& name, int slot) {
    const auto copy = copies_.at(name);
    order_.splice(order_.end(), order_, copy);
    cache_.restore(stream_, slot, copy->state);
}

}  // namespace exl3
