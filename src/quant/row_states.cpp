#include "quant/row_states.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace exl3 {

namespace {

// The layer whose cached keys and values a block reads instead of its own; -1: its own.
int cache_source(const BlockSpec& block) {
    const auto* a = std::get_if<AttentionSpec>(&block.mixer);
    return a ? a->kv_layer : -1;
}

}  // namespace

RowStates::RowStates(Stream& s, const Checkpoint& c, const ModelSpec& spec,
                     std::vector<std::vector<int32_t>> rows)
    : s_(s),
      spec_(spec),
      rows_(std::move(rows)),
      length_(static_cast<int64_t>(rows_.front().size())),
      embedding_(s, c, spec) {
    for (const BlockSpec& block : spec.blocks)
        if (const int source = cache_source(block); source >= 0) cache_sources_.insert(source);
}

bool RowStates::reads_before(int layer) const {
    return std::any_of(cache_sources_.begin(), cache_sources_.end(),
                       [&](int source) { return source < layer; });
}

size_t RowStates::row_numel() const {
    return static_cast<size_t>(length_) * static_cast<size_t>(spec_.hidden);
}

View RowStates::row(size_t r) {
    return dense(values_.data() + r * row_numel(), DType::f32, {length_, spec_.hidden});
}

bool RowStates::finite(size_t r) const {
    const float* x = values_.data() + r * row_numel();
    return std::all_of(x, x + row_numel(), [](float v) { return std::isfinite(v); });
}

void RowStates::embed() {
    values_.resize(numel());
    for (size_t r = 0; r < rows_.size(); ++r) {
        const auto scope = s_.workspace().scope();
        const View ids = s_.workspace().take(DType::i32, {length_});
        s_.copy(dense(rows_[r].data(), DType::i32, {length_}), ids);
        const View x = s_.workspace().take(DType::f32, {length_, spec_.hidden});
        embedding_.forward(s_, ids, x);
        s_.copy(x, row(r));
    }
    s_.synchronize();
}

// The cache a block works on. That of a layer which later ones read holds all rows and is kept; it
// is the one of its last pass, through the layer as it will be.
const PagedCache& RowStates::cache_for(int layer, bool last_pass) {
    const int source = cache_source(spec_.blocks[static_cast<size_t>(layer)]);
    if (source >= 0) return *kept_caches_.at(source);
    const int pages = pages_for(length_);
    const KvLayout layout = kv_layout(spec_).only(layer);
    if (last_pass && cache_sources_.contains(layer)) {
        auto& kept = kept_caches_[layer];
        kept = std::make_unique<PagedCache>(s_.device(), layout,
                                            pages * static_cast<int>(rows_.size()));
        return *kept;
    }
    scratch_cache_ = std::make_unique<PagedCache>(s_.device(), layout, pages);
    return *scratch_cache_;
}

void RowStates::forward(const Block& block, int layer, LinearTap* tap,
                        const std::function<void()>& between) {
    const PagedCache& cache = cache_for(layer, !tap);
    // Rows have pages of their own where later layers will read them.
    const bool kept = cache.pages() > pages_for(length_);
    // Every row starts at its first token, so it finds zeros in the one slot there is.
    const StateCache states(s_.device(), state_layout(spec_).only(layer), 1);
    const int32_t slot = 0;
    std::vector<int32_t> positions(static_cast<size_t>(length_)),
        pages(static_cast<size_t>(pages_for(length_)));
    std::iota(positions.begin(), positions.end(), 0);
    std::iota(pages.begin(), pages.end(), 0);
    const int32_t q_start[2] = {0, static_cast<int32_t>(length_)};
    const auto kv_len = static_cast<int32_t>(length_);
    for (size_t r = 0; r < rows_.size(); ++r) {
        between();
        const auto scope = s_.workspace().scope();
        if (kept) std::iota(pages.begin(), pages.end(), static_cast<int32_t>(r * pages.size()));
        const auto upload = [&](const int32_t* data, Shape shape) {
            const View v = s_.workspace().take(DType::i32, shape);
            s_.copy(dense(data, DType::i32, shape), v);
            return v;
        };
        const View ids = upload(rows_[r].data(), {length_});
        Batch batch{.tokens = ids,
                    .positions = upload(positions.data(), {length_}),
                    .seq = {.q_start = upload(q_start, {2}),
                            .kv_len = upload(&kv_len, {1}),
                            .pages = upload(pages.data(), {1, static_cast<int64_t>(pages.size())})},
                    .cache = &cache,
                    .slots = upload(&slot, {1}),
                    .states = &states,
                    .rope_length = length_,
                    .tap = tap};
        const View x = s_.workspace().take(DType::f32, {length_, spec_.hidden});
        if (needs_embedded(spec_)) {
            const View embedded = s_.workspace().take(DType::f32, x.shape);
            embedding_.forward(s_, ids, embedded);
            batch.embedded = embedded;
        }
        s_.copy(row(r), x);
        block.forward(s_, batch, x);
        if (!tap) s_.copy(x, row(r));
        s_.synchronize();
    }
}

}  // namespace exl3
