#include "quant/ldlq.h"

#include "ops/ops.h"
#include "quant/tiles.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

class Ldlq {
public:
    Ldlq(Stream& s, View target, const std::vector<float>& factor, const TrellisKind& kind,
         uint16_t* states, int64_t state_stride)
        : s_(s),
          rows_(target),
          n_(target.shape[1]),
          factor_(factor),
          kind_(kind),
          states_(states),
          state_stride_(state_stride),
          tiles_(s.workspace().take(DType::f32, {n_ / kTile, kTileSize})),
          values_(s.workspace().take(DType::f32, {n_ / kTile, kTileSize})),
          fed_(s.workspace().take(DType::f32, {kTile, n_})),
          rounded_(s.workspace().take(DType::f32, {kTile, n_})) {}

    void run() {
        const int64_t k = rows_.shape[0];
        View carried{};
        if (!factor_.empty() && k > kSpan) {
            carried = s_.workspace().take(DType::f32, {k - kSpan, n_});
            std::fill_n(carried.as<float>(), carried.shape.numel(), 0.0f);
        }
        for (int64_t end = k; end > 0; end -= kSpan) {
            const int64_t begin = end - kSpan;
            for (int64_t row = end - kTile; row >= begin; row -= kTile)
                round_row(row, end, end == k ? View{} : carried);
            if (carried && begin > 0) feed(begin, end - begin, 0, slice_rows(carried, 0, begin));
        }
    }

private:
    // Rows of tiles within a span take up errors one after the other; what a finished span leaves
    // over goes to all rows before it by one gemm.
    static constexpr int64_t kSpan = 128;

    // y += L[from, to]ᵀ (errors of rows from)
    void feed(int64_t from, int64_t count, int64_t to, View y) {
        const int64_t k = rows_.shape[0];
        ops::gemm(
            s_, {.a = ConstView{factor_.data() + from * k + to, DType::f32, {count, y.shape[0]}, k},
                 .b = slice_rows(rows_, from, count),
                 .c = y,
                 .transpose_a = true,
                 .beta = 1});
    }

    void round_row(int64_t row, int64_t span_end, View carried) {
        const View target = slice_rows(rows_, row, kTile);
        s_.copy(target, fed_);
        if (carried) ops::add(s_, {.x = slice_rows(carried, row, kTile), .y = fed_});
        const int64_t after = row + kTile;
        if (!factor_.empty() && after < span_end) feed(after, span_end - after, row, fed_);
        s_.synchronize();
        gather_tiles(fed_.as<float>(), n_ / kTile, tiles_.as<float>());
        ops::encode_tiles(
            s_, {.target = tiles_,
                 .states = dense(states_ + row / kTile * state_stride_, DType::u16, tiles_.shape),
                 .values = values_,
                 .codebook = kind_.codebook,
                 .bits = kind_.bits});
        s_.synchronize();
        scatter_tiles(values_.as<float>(), n_ / kTile, rounded_.as<float>());
        for (int64_t r = 0; r < kTile; ++r) {
            float* x = target.row<float>(r);
            const float* value = rounded_.row<float>(r);
            for (int64_t j = 0; j < n_; ++j) x[j] -= value[j];
        }
    }

    Stream& s_;
    View rows_;  // targets of rows to come, errors of rows done
    int64_t n_;
    const std::vector<float>& factor_;
    TrellisKind kind_;
    uint16_t* states_;
    int64_t state_stride_;
    View tiles_, values_, fed_, rounded_;
};

}  // namespace

void round_to_trellis(Stream& s, View target, const std::vector<float>& factor,
                      const TrellisKind& kind, uint16_t* states, int64_t state_stride) {
    EXL3_CHECK(target.shape[0] % 128 == 0 && target.shape[1] % 128 == 0);
    const auto scope = s.workspace().scope();
    Ldlq(s, target, factor, kind, states, state_stride).run();
}

}  // namespace exl3
