#include "gen/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace exl3 {

Session::Session(const Model& model, Stream& s, const SessionOptions& options)
    : model_(model),
      stream_(s),
      options_(options),
      cache_(s.device(), kv_layout(model.spec()), pages_for(options.max_tokens), options.kv_bits),
      states_(s.device(), state_layout(model.spec()), 1),
      pages_(static_cast<size_t>(cache_.pages())) {
    EXL3_CHECK(options.max_tokens > 0 && options.chunk > 0);
    if (options_.rope_length == 0) options_.rope_length = options_.max_tokens;
    std::iota(pages_.begin(), pages_.end(), 0);
}

void Session::require_ids(std::span<const int32_t> tokens) const {
    for (const int32_t id : tokens)
        if (id < 0 || id >= model_.spec().vocab)
            throw Error(Errc::invalid_argument, {},
                        fmt::format("token id {}: needed 0 to {}", id, model_.spec().vocab - 1));
}

ConstView Session::run_one(int32_t token) {
    if (!step_)
        step_ = std::make_unique<DecodeStep>(
            model_, stream_, cache_, states_,
            DecodeStep::Options{.pages = pages_, .rope_length = options_.rope_length});
    const auto position = static_cast<int32_t>(size_);
    step_->set({&token, 1}, {&position, 1});
    step_->run();
    stream_.synchronize();
    ++size_;
    return step_->logits();
}

// Runs one chunk; the returned logits live in the caller's workspace scope.
ConstView Session::run(std::span<const int32_t> tokens, Rows rows) {
    require_ids(tokens);
    if (tokens.size() == 1 && DecodeStep::supports(model_.spec())) return run_one(tokens[0]);
    const auto n = static_cast<int64_t>(tokens.size());
    const ModelSpec& spec = model_.spec();
    Workspace& w = stream_.workspace();
    std::vector<int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(size_));
    const int32_t q_start[2] = {0, static_cast<int32_t>(n)};
    const auto kv_len = static_cast<int32_t>(size_ + n);
    const int32_t slot = 0;
    const auto upload = [&](const int32_t* data, Shape shape) {
        const View v = w.take(DType::i32, shape);
        stream_.copy(dense(data, DType::i32, shape), v);
        return v;
    };
    const Batch batch{
        .tokens = upload(tokens.data(), {n}),
        .positions = upload(positions.data(), {n}),
        .seq = {.q_start = upload(q_start, {2}),
                .kv_len = upload(&kv_len, {1}),
                .pages = upload(pages_.data(), {1, static_cast<int64_t>(pages_.size())})},
        .cache = &cache_,
        .slots = upload(&slot, {1}),
        .states = &states_,
        .rope_length = options_.rope_length};
    const View x = w.take(DType::f32, {n, spec.hidden});
    model_.hidden(stream_, batch, x);
    const View wanted = rows == Rows::all ? x : slice_rows(x, n - 1, 1);
    const View logits = w.take(DType::f32, {wanted.shape[0], spec.vocab});
    model_.logits(stream_, wanted, logits);
    stream_.synchronize();
    size_ += n;
    return logits;
}

void Session::require_room(size_t tokens) const {
    if (size_ + static_cast<int64_t>(tokens) > options_.max_tokens)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("{} tokens on top of {}: the context holds {}", tokens, size_,
                                options_.max_tokens));
}

void Session::keep_point() {
    // A turn of a conversation returns to the end of the prompt before it, or a little earlier.
    constexpr size_t kPoints = 3;
    if (states_.bytes_per_slot() == 0) return;
    Point p{size_, std::vector<std::byte>(states_.bytes_per_slot())};
    states_.save(stream_, 0, p.state);
    stream_.synchronize();
    points_.push_back(std::move(p));
    if (points_.size() > kPoints) points_.pop_front();
}

int64_t Session::truncate(int64_t size) {
    if (size >= size_) return size_;
    size_ = size;
    if (states_.bytes_per_slot() == 0) return size_;
    while (!points_.empty() && points_.back().size > size) points_.pop_back();
    // A sequence that starts over finds zeros, whatever the slot holds.
    size_ = points_.empty() ? 0 : points_.back().size;
    if (!points_.empty()) states_.restore(stream_, 0, points_.back().state);
    return size_;
}

void Session::feed(std::span<const int32_t> tokens, std::span<float> logits) {
    EXL3_CHECK(!tokens.empty() && logits.size() == static_cast<size_t>(model_.spec().vocab));
    require_room(tokens.size());
    const auto chunk = static_cast<size_t>(options_.chunk);
    for (size_t i = 0; i < tokens.size(); i += chunk) {
        const auto scope = stream_.workspace().scope();
        const ConstView y = run(tokens.subspan(i, std::min(chunk, tokens.size() - i)), Rows::last);
        if (i + chunk >= tokens.size())
            stream_.copy(y, dense(logits.data(), DType::f32, {1, model_.spec().vocab}));
    }
    if (tokens.size() > 1) keep_point();
}

void Session::feed_all(std::span<const int32_t> tokens,
                       const std::function<void(int64_t, ConstView)>& each) {
    require_room(tokens.size());
    std::vector<float> host;
    const auto chunk = static_cast<size_t>(options_.chunk);
    for (size_t i = 0; i < tokens.size(); i += chunk) {
        const auto scope = stream_.workspace().scope();
        const int64_t first = size_;
        const ConstView y = run(tokens.subspan(i, std::min(chunk, tokens.size() - i)), Rows::all);
        host.resize(static_cast<size_t>(y.shape.numel()));
        stream_.copy(y, dense(host.data(), DType::f32, y.shape));
        each(first, dense(host.data(), DType::f32, y.shape));
    }
}

}  // namespace exl3
