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
      pages_(static_cast<size_t>(cache_.pages())) {
    EXL3_CHECK(options.max_tokens > 0 && options.chunk > 0);
    if (options_.rope_length == 0) options_.rope_length = options_.max_tokens;
    std::iota(pages_.begin(), pages_.end(), 0);
}

// Runs one chunk; the returned logits live in the caller's workspace scope.
View Session::run(std::span<const int32_t> tokens, Rows rows) {
    const auto n = static_cast<int64_t>(tokens.size());
    const ModelSpec& spec = model_.spec();
    for (const int32_t id : tokens)
        if (id < 0 || id >= spec.vocab)
            throw Error(Errc::invalid_argument, {},
                        fmt::format("token id {}: needed 0 to {}", id, spec.vocab - 1));
    Workspace& w = stream_.workspace();
    std::vector<int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(size_));
    const int32_t q_start[2] = {0, static_cast<int32_t>(n)};
    const auto kv_len = static_cast<int32_t>(size_ + n);
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

void Session::feed(std::span<const int32_t> tokens, std::span<float> logits) {
    EXL3_CHECK(!tokens.empty() && logits.size() == static_cast<size_t>(model_.spec().vocab));
    if (size_ + static_cast<int64_t>(tokens.size()) > options_.max_tokens)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("{} tokens on top of {}: the context holds {}", tokens.size(),
                                size_, options_.max_tokens));
    const auto chunk = static_cast<size_t>(options_.chunk);
    for (size_t i = 0; i < tokens.size(); i += chunk) {
        const auto scope = stream_.workspace().scope();
        const View y = run(tokens.subspan(i, std::min(chunk, tokens.size() - i)), Rows::last);
        if (i + chunk >= tokens.size())
            stream_.copy(y, dense(logits.data(), DType::f32, {1, model_.spec().vocab}));
    }
}

void Session::feed_all(std::span<const int32_t> tokens,
                       const std::function<void(int64_t, ConstView)>& each) {
    if (size_ + static_cast<int64_t>(tokens.size()) > options_.max_tokens)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("{} tokens on top of {}: the context holds {}", tokens.size(),
                                size_, options_.max_tokens));
    std::vector<float> host;
    const auto chunk = static_cast<size_t>(options_.chunk);
    for (size_t i = 0; i < tokens.size(); i += chunk) {
        const auto scope = stream_.workspace().scope();
        const int64_t first = size_;
        const View y = run(tokens.subspan(i, std::min(chunk, tokens.size() - i)), Rows::all);
        host.resize(static_cast<size_t>(y.shape.numel()));
        stream_.copy(y, dense(host.data(), DType::f32, y.shape));
        each(first, dense(host.data(), DType::f32, y.shape));
    }
}

}  // namespace exl3
