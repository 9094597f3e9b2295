#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "model/model.h"

namespace exl3 {

/// Hidden states of rows of token ids of equal length, moved on through a model layer by layer, so
/// that one layer at a time is in memory. Every row is a sequence of its own.
class RowStates {
public:
    RowStates(Stream& s, const Checkpoint& c, const ModelSpec& spec,
              std::vector<std::vector<int32_t>> rows);

    /// Sets the states that enter the first layer.
    void embed();
    /// Runs every row through a layer. With a tap the states are left as they are.
    /// @param between  called before each row; may throw to stop
    void forward(const Block& block, int layer, LinearTap* tap,
                 const std::function<void()>& between);
    /// True if a layer reads the cache of one before `layer`: then states saved there are not
    /// enough to go on from.
    bool reads_before(int layer) const;

    size_t count() const { return rows_.size(); }
    int64_t length() const { return length_; }
    size_t numel() const { return rows_.size() * row_numel(); }
    View row(size_t r);                               ///< (length, hidden) f32 in host memory
    bool finite(size_t r) const;                      ///< no value of the row is NaN or infinite
    std::vector<float>& values() { return values_; }  ///< (rows, length, hidden)

private:
    size_t row_numel() const;
    const PagedCache& cache_for(int layer, bool last_pass);

    Stream& s_;
    const ModelSpec& spec_;
    std::vector<std::vector<int32_t>> rows_;
    int64_t length_ = 0;
    std::vector<float> values_;
    Embedding embedding_;
    std::set<int> cache_sources_;  // layers whose cache later layers read
    std::map<int, std::unique_ptr<PagedCache>> kept_caches_;
    std::unique_ptr<PagedCache> scratch_cache_;
};

}  // namespace exl3
