#include "server/response_store.h"

namespace exl3::server {

void ResponseStore::put(const std::string& id, Item item) {
    const std::lock_guard lock(mutex_);
    if (items_.insert_or_assign(id, std::move(item)).second) order_.push_back(id);
    while (items_.size() > limit_) {
        items_.erase(order_.front());
        order_.pop_front();
    }
}

std::optional<ResponseStore::Item> ResponseStore::get(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto it = items_.find(id);
    if (it == items_.end()) return std::nullopt;
    return it->second;
}

bool ResponseStore::erase(const std::string& id) {
    const std::lock_guard lock(mutex_);
    order_.remove(id);
    return items_.erase(id) > 0;
}

}  // namespace exl3::server
