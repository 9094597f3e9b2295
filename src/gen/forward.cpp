#include "gen/forward.h"

#include <algorithm>

namespace exl3 {

Forward::Forward(const Model& model, Stream& s, const PagedCache& cache,
                 const ForwardLimits& limits, const StateCache* states)
    : model_(model), stream_(s), cache_(cache), states_(states), limits_(limits) {
    const auto sequences = static_cast<size_t>(limits.sequences);
    tokens_.reserve(static_cast<size_t>(limits.rows));
    positions_.reserve(static_cast<size_t>(limits.rows));
    q_start_.reserve(sequences + 1);
    kv_len_.reserve(sequences);
    slots_.reserve(sequences);
    pages_.reserve(sequences * static_cast<size_t>(limits.pages));
    logits_.reserve(static_cast<size_t>(limits.logit_rows) *
                    static_cast<size_t>(model.spec().vocab));
}

ConstView Forward::upload(const std::vector<int32_t>& from, Shape shape) {
    const View v = stream_.workspace().take(DType::i32, shape);
    stream_.copy(dense(from.data(), DType::i32, shape), v);
    return v;
}

ConstView Forward::run(std::span<const Feed> feeds) {
    tokens_.clear();
    positions_.clear();
    kv_len_.clear();
    slots_.clear();
    q_start_.assign(1, 0);
    size_t most_pages = 1;
    int64_t logit_rows = 0;
    for (const Feed& f : feeds) {
        tokens_.insert(tokens_.end(), f.tokens.begin(), f.tokens.end());
        tokens_.insert(tokens_.end(), f.drafts.begin(), f.drafts.end());
        const auto end = f.position + static_cast<int64_t>(f.tokens.size() + f.drafts.size());
        for (int64_t p = f.position; p < end; ++p) positions_.push_back(static_cast<int32_t>(p));
        q_start_.push_back(static_cast<int32_t>(tokens_.size()));
        kv_len_.push_back(static_cast<int32_t>(end));
        slots_.push_back(f.slot);
        most_pages = std::max(most_pages, f.pages.size());
        logit_rows += f.logit_rows;
    }
    pages_.assign(feeds.size() * most_pages, 0);
    for (size_t i = 0; i < feeds.size(); ++i)
        std::copy(feeds[i].pages.begin(), feeds[i].pages.end(),
                  pages_.begin() + static_cast<std::ptrdiff_t>(i * most_pages));

    const auto scope = stream_.workspace().scope();
    Workspace& w = stream_.workspace();
    const auto rows = static_cast<int64_t>(tokens_.size());
    const auto count = static_cast<int64_t>(feeds.size());
    const Batch batch{.tokens = upload(tokens_, {rows}),
                      .positions = upload(positions_, {rows}),
                      .seq = {.q_start = upload(q_start_, {count + 1}),
                              .kv_len = upload(kv_len_, {count}),
                              .pages = upload(pages_, {count, static_cast<int64_t>(most_pages)})},
                      .cache = &cache_,
                      .slots = states_ ? upload(slots_, {count}) : ConstView{},
                      .states = states_,
                      .rope_length = limits_.rope_length};
    const View x = w.take(DType::f32, {rows, model_.spec().hidden});
    model_.hidden(stream_, batch, x);

    const int64_t vocab = model_.spec().vocab;
    logits_.resize(static_cast<size_t>(logit_rows * vocab));
    const ConstView host = dense(logits_.data(), DType::f32, {logit_rows, vocab});
    if (logit_rows > 0) {
        const View wanted = w.take(DType::f32, {logit_rows, model_.spec().hidden});
        int64_t to = 0;
        for (size_t i = 0; i < feeds.size(); ++i) {
            const int64_t n = feeds[i].logit_rows;
            if (n == 0) continue;
            stream_.copy(slice_rows(x, q_start_[i + 1] - n, n), slice_rows(wanted, to, n));
            to += n;
        }
        const View logits = w.take(DType::f32, {logit_rows, vocab});
        model_.logits(stream_, wanted, logits);
        stream_.copy(logits, dense(logits_.data(), DType::f32, {logit_rows, vocab}));
    }
    stream_.synchronize();
    return host;
}

}  // namespace exl3
