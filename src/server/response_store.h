#pragma once
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "io/json.h"

namespace exl3::server {

/// The last replies of /v1/responses, for previous_response_id and GET. Thread-safe.
class ResponseStore {
public:
    struct Item {
        Json response;  ///< as it was sent
        Json messages;  ///< the conversation up to and with it, as chat messages
        Json input;     ///< items of the request
    };
    explicit ResponseStore(size_t limit = 1000) : limit_(limit) {}
    void put(const std::string& id, Item item);  ///< the oldest goes when there are too many
    std::optional<Item> get(const std::string& id) const;
    bool erase(const std::string& id);

private:
    size_t limit_;
    mutable std::mutex mutex_;
    std::list<std::string> order_;  // oldest first
    std::map<std::string, Item> items_;
};

}  // namespace exl3::server
