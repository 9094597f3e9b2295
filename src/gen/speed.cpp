#include "gen/speed.h"

#include <chrono>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "ops/ops.h"

namespace exl3 {

SpeedProbe::SpeedProbe(const Model& model, Stream& s, int sequences, int64_t max_tokens,
                       KvBits bits)
    : model_(model),
      stream_(s),
      pages_each_(pages_for(max_tokens)),
      bytes_per_token_(kv_layout(model.spec()).bytes_per_token(bits)),
      cache_(s.device(), kv_layout(model.spec()), sequences * pages_each_, bits),
      states_(s.device(), state_layout(model.spec()), sequences),
      pages_(static_cast<size_t>(sequences) * pages_each_),
      slots_(static_cast<size_t>(sequences)),
      logits_(static_cast<size_t>(sequences) * model.spec().vocab) {
    std::iota(pages_.begin(), pages_.end(), 0);
    fill_cache(kv_layout(model.spec()));
    std::iota(slots_.begin(), slots_.end(), 0);
    for (const int32_t slot : slots_) states_.reset(s, slot);
}

void SpeedProbe::fill_cache(const KvLayout& layout) {
    Random random(4);
    Workspace& w = stream_.workspace();
    for (size_t i = 0; i < layout.layers.size(); ++i) {
        const auto& l = layout.layers[i];
        if (l.kv_heads == 0) continue;
        const Shape shape = {kPageTokens, l.kv_heads, l.head_dim};
        std::vector<float> page(static_cast<size_t>(shape.numel()));
        for (float& x : page) x = static_cast<float>(2 * random.uniform() - 1);
        const auto scope = w.scope();
        const auto upload = [&](const void* data, DType type, Shape of) {
            const View v = w.take(type, of);
            stream_.copy(dense(data, type, of), v);
            return v;
        };
        const View rows = upload(page.data(), DType::f32, shape);
        const int32_t whole[3] = {0, kPageTokens, kPageTokens};
        const View q_start = upload(whole, DType::i32, {2});
        const View kv_len = upload(whole + 2, DType::i32, {1});
        const View pages = upload(pages_.data(), DType::i32, {static_cast<int64_t>(pages_.size())});
        for (int p = 0; p < cache_.pages(); ++p)
            ops::kv_append(stream_,
                           {.k = rows,
                            .v = rows,
                            .seq = {.q_start = q_start,
                                    .kv_len = kv_len,
                                    .pages = dense(pages.as<int32_t>() + p, DType::i32, {1, 1})},
                            .cache = cache_.layer(static_cast<int>(i))});
        stream_.synchronize();
    }
}

double SpeedProbe::pass(int sequences, int64_t past, int64_t added) {
    EXL3_CHECK(added > 0 && pages_for(past + added) <= pages_each_);
    const int64_t tokens = sequences * added;
    const ModelSpec& spec = model_.spec();
    std::vector<int32_t> ids, positions, q_start, kv_len;
    for (int64_t i = 0; i < tokens; ++i) {
        ids.push_back(static_cast<int32_t>(noise64(5, static_cast<uint64_t>(i)) %
                                           static_cast<uint64_t>(spec.vocab)));
        positions.push_back(static_cast<int32_t>(past + i % added));
    }
    for (int q = 0; q <= sequences; ++q) q_start.push_back(static_cast<int32_t>(q * added));
    kv_len.assign(static_cast<size_t>(sequences), static_cast<int32_t>(past + added));

    const auto start = std::chrono::steady_clock::now();
    Workspace& w = stream_.workspace();
    const auto scope = w.scope();
    const auto upload = [&](const std::vector<int32_t>& v, Shape shape) {
        const View view = w.take(DType::i32, shape);
        stream_.copy(dense(v.data(), DType::i32, shape), view);
        return view;
    };
    const Batch batch{.tokens = upload(ids, {tokens}),
                      .positions = upload(positions, {tokens}),
                      .seq = {.q_start = upload(q_start, {sequences + 1}),
                              .kv_len = upload(kv_len, {sequences}),
                              .pages = upload(pages_, {sequences, pages_each_})},
                      .cache = &cache_,
                      .slots = upload(slots_, {sequences}),
                      .states = &states_,
                      .rope_length = past + added};
    const View x = w.take(DType::f32, {tokens, spec.hidden});
    model_.hidden(stream_, batch, x);
    View last = x;
    if (added > 1) {
        last = w.take(DType::f32, {sequences, spec.hidden});
        for (int q = 0; q < sequences; ++q)
            stream_.copy(slice_rows(x, (q + 1) * added - 1, 1), slice_rows(last, q, 1));
    }
    const View logits = w.take(DType::f32, {sequences, spec.vocab});
    model_.logits(stream_, last, logits);
    stream_.copy(logits, dense(logits_.data(), DType::f32, {sequences, spec.vocab}));
    stream_.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double SpeedProbe::decode(int sequences, int64_t past, int steps) {
    EXL3_CHECK(pages_for(past + steps) <= pages_each_);
    const auto n = static_cast<size_t>(sequences);
    if (step_sequences_ != sequences) {
        step_ = nullptr;
        step_ = std::make_unique<DecodeStep>(
            model_, stream_, cache_, states_,
            DecodeStep::Options{
                .sequences = sequences,
                .pages = std::span(pages_).first(n * static_cast<size_t>(pages_each_)),
                .rope_length = past + 1,
                .choose = true});
        step_sequences_ = sequences;
        step_->set(std::vector<int32_t>(n, 0), std::vector<int32_t>(n, static_cast<int32_t>(past)));
        step_->run();  // records
    }
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < n; ++i)
        tokens.push_back(
            static_cast<int32_t>(noise64(5, i) % static_cast<uint64_t>(model_.spec().vocab)));
    step_->set(tokens, std::vector<int32_t>(n, static_cast<int32_t>(past)));
    stream_.synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) step_->run();
    stream_.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / steps;
}

uint64_t SpeedProbe::cache_bytes(int sequences, int64_t past, int64_t added) const {
    const uint64_t each =
        bytes_per_token_ * static_cast<uint64_t>(past + added) + 2 * states_.bytes_per_slot();
    return each * static_cast<uint64_t>(sequences);
}

WeightTraffic weight_traffic(Model& model, int batch) {
    WeightTraffic t;
    double bytes = 0;
    model.each_linear([&](LinearSlot& slot) {
        const LinearInfo info = slot.linear->info();
        const double read = 1 - std::pow(1 - slot.spec.token_share, batch);
        bytes += read * static_cast<double>(info.bytes);
        t.weights += read * static_cast<double>(info.in) * info.out;
    });
    t.bytes = static_cast<uint64_t>(bytes);
    return t;
}

}  // namespace exl3
