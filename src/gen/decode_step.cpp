#include "gen/decode_step.h"

#include <numeric>

#include "model/rope_table.h"
#include "ops/ops.h"

namespace exl3 {
namespace {

View row_of(const Tensor& t, int64_t row) {
    return dense(t.view.row<int32_t>(row), DType::i32, {t.view.shape[1]});
}

Tensor ints(Stream& s, std::span<const int32_t> from, Shape shape) {
    Tensor t = s.device().make_tensor(DType::i32, shape);
    s.copy(dense(from.data(), DType::i32, shape), t.view);
    return t;
}

std::vector<int32_t> counted(int n) {
    std::vector<int32_t> v(static_cast<size_t>(n));
    std::iota(v.begin(), v.end(), 0);
    return v;
}

}  // namespace

bool DecodeStep::supports(const ModelSpec& spec) {
    for (const BlockSpec& block : spec.blocks)
        if (const auto* a = std::get_if<AttentionSpec>(&block.mixer))
            if (a->rope && depends_on_length(*a->rope)) return false;
    return true;
}

DecodeStep::DecodeStep(const Model& model, Stream& s, const PagedCache& cache,
                       const StateCache& states, const Options& options)
    : model_(model), stream_(s), cache_(cache), states_(states), options_(options) {
    const int n = options.sequences;
    const auto each = static_cast<int64_t>(options.pages.size()) / n;
    Device& device = s.device();
    rows_ = device.make_tensor(DType::i32, {3, n});
    q_start_ = ints(s, counted(n + 1), {n + 1});
    pages_ = ints(s, options.pages, {n, each});
    slots_ = ints(s, counted(n), {n});
    log_ = device.make_tensor(DType::i32, {kLog, n});
    x_ = device.make_tensor(DType::f32, {n, model.spec().hidden});
    logits_ = device.make_tensor(DType::f32, {n, model.spec().vocab});
    options_.pages = {};
    s.synchronize();
}

void DecodeStep::set(std::span<const int32_t> tokens, std::span<const int32_t> positions) {
    const auto n = static_cast<size_t>(options_.sequences);
    EXL3_CHECK(tokens.size() == n && positions.size() == n);
    std::vector<int32_t> rows(tokens.begin(), tokens.end());
    rows.insert(rows.end(), positions.begin(), positions.end());
    for (const int32_t p : positions) rows.push_back(p + 1);
    stream_.copy(dense(rows.data(), DType::i32, rows_.view.shape), rows_.view);
    position_ = positions[0];
}

void DecodeStep::queue() {
    const View tokens = row_of(rows_, 0), positions = row_of(rows_, 1), kv_len = row_of(rows_, 2);
    const Batch batch{.tokens = tokens,
                      .positions = positions,
                      .seq = {.q_start = q_start_.view, .kv_len = kv_len, .pages = pages_.view},
                      .cache = &cache_,
                      .slots = slots_.view,
                      .states = &states_,
                      .rope_length = options_.rope_length};
    model_.hidden(stream_, batch, x_.view);
    model_.logits(stream_, x_.view, logits_.view);
    if (options_.choose)
        ops::next_token(stream_, {.logits = logits_.view,
                                  .tokens = tokens,
                                  .positions = positions,
                                  .kv_len = kv_len,
                                  .log = log_.view});
}

void DecodeStep::run() {
    if (graph_)
        graph_->launch();
    else
        graph_ = stream_.capture([this] { queue(); });
    ++position_;
}

std::vector<int32_t> DecodeStep::chosen(int steps) {
    EXL3_CHECK(options_.choose && steps <= kLog);
    const auto n = static_cast<size_t>(options_.sequences);
    std::vector<int32_t> log(kLog * n), out;
    stream_.copy(log_.view, dense(log.data(), DType::i32, log_.view.shape));
    stream_.synchronize();
    for (int64_t p = position_ - steps; p < position_; ++p) {
        const auto row = log.begin() + static_cast<int64_t>(n) * (p % kLog);
        out.insert(out.end(), row, row + static_cast<int64_t>(n));
    }
    return out;
}

}  // namespace exl3
