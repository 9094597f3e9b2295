// LDLQ with feedback along both sides of a matrix.
//
// With H = (I + L) D (I + L)ᵀ and O = (I + M) C (I + M)ᵀ the objective tr(O Eᵀ H E) is
// tr(C Fᵀ D F), F = (I + L)ᵀ E (I + M). A tile of F is its own error plus what later tiles feed
// it: through L the errors below it (G), through M the sums E + G to the right of it. Rounding the
// target plus all that is fed makes F as small as the trellis allows.
#include <algorithm>
#include <array>

#include "ops/ops.h"
#include "quant/ldlq.h"
#include "quant/tiles.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

using Tile = std::array<float, kTileSize>;  // 16 rows of 16 values

class TwoSided {
public:
    TwoSided(Stream& s, View target, const std::vector<float>& in, const std::vector<float>& out,
             const TrellisKind& kind, uint16_t* states, int64_t state_stride)
        : s_(s),
          rows_(target),
          k_(target.shape[0]),
          n_(target.shape[1]),
          in_(in),
          out_(out),
          kind_(kind),
          states_(states),
          state_stride_(state_stride),
          fed_(s.workspace().take(DType::f32, {k_, n_})),
          sums_(s.workspace().take(DType::f32, {kRowSpan, n_})),
          right_(s.workspace().take(DType::f32, {kRowSpan, n_})) {}

    void run() {
        std::fill_n(fed_.as<float>(), fed_.shape.numel(), 0.0f);
        for (int64_t end = k_; end > 0; end -= kRowSpan) {
            begin_ = std::max<int64_t>(0, end - kRowSpan);
            end_ = end;
            std::fill_n(right_.as<float>(), right_.shape.numel(), 0.0f);
            round_span();
            if (begin_ > 0)
                ops::gemm(
                    s_, {.a =
                             ConstView{
                                 in_.data() + begin_ * k_, DType::f32, {end_ - begin_, begin_}, k_},
                         .b = slice_rows(rows_, begin_, end_ - begin_),
                         .c = slice_rows(fed_, 0, begin_),
                         .transpose_a = true,
                         .beta = 1});
            s_.synchronize();
        }
    }

private:
    // Errors within a span are fed tile by tile; what a finished span leaves over goes on by gemm.
    static constexpr int64_t kRowSpan = 128, kColumnSpan = 128;

    // Tiles on an antidiagonal do not depend on each other: those of a span of rows are rounded
    // together, the lowest row of tiles ahead.
    void round_span() {
        const int64_t down = (end_ - begin_) / kTile, across = n_ / kTile;
        std::vector<std::pair<int64_t, int64_t>> wave;
        for (int64_t step = 0; step < down + across - 1; ++step) {
            wave.clear();
            for (int64_t a = 0; a < down; ++a) {
                const int64_t b = step - a;
                if (b >= 0 && b < across)
                    wave.emplace_back(end_ - (a + 1) * kTile, n_ - (b + 1) * kTile);
            }
            round_wave(wave);
            for (const auto& [row, col] : wave)
                if (col % kColumnSpan == 0 && col > 0) feed_left(row, col);
        }
    }

    void round_wave(const std::vector<std::pair<int64_t, int64_t>>& wave) {
        const auto scope = s_.workspace().scope();
        const auto count = static_cast<int64_t>(wave.size());
        const Shape shape = {count, kTileSize};
        const View target = s_.workspace().take(DType::f32, shape);
        const View values = s_.workspace().take(DType::f32, shape);
        const View states = s_.workspace().take(DType::u16, shape);
        std::vector<Tile> below(wave.size());
        for (size_t i = 0; i < wave.size(); ++i) {
            const auto [row, col] = wave[i];
            below[i] = from_below(row, col);
            Tile x = below[i];
            add_from_right(row, col, x);
            for (int64_t r = 0; r < kTile; ++r)
                for (int64_t c = 0; c < kTile; ++c)
                    x[static_cast<size_t>(r * kTile + c)] += rows_.row<float>(row + r)[col + c];
            gather_tiles(x.data(), 1, target.row<float>(static_cast<int64_t>(i)));
        }
        ops::encode_tiles(s_, {.target = target,
                               .states = states,
                               .values = values,
                               .codebook = kind_.codebook,
                               .bits = kind_.bits});
        s_.synchronize();
        for (size_t i = 0; i < wave.size(); ++i) {
            const auto [row, col] = wave[i];
            Tile value;
            scatter_tiles(values.row<float>(static_cast<int64_t>(i)), 1, value.data());
            for (int64_t r = 0; r < kTile; ++r)
                for (int64_t c = 0; c < kTile; ++c) {
                    const auto at = static_cast<size_t>(r * kTile + c);
                    float& error = rows_.row<float>(row + r)[col + c];
                    error -= value[at];
                    sums_.row<float>(row + r - begin_)[col + c] = error + below[i][at];
                }
            std::copy_n(states.row<uint16_t>(static_cast<int64_t>(i)), kTileSize,
                        states_ + row / kTile * state_stride_ + col / kTile * kTileSize);
        }
    }

    // G of a tile: what finished spans fed it, and the rows below it within its span.
    Tile from_below(int64_t row, int64_t col) const {
        Tile g;
        for (int64_t r = 0; r < kTile; ++r)
            std::copy_n(fed_.row<float>(row + r) + col, kTile, g.data() + r * kTile);
        for (int64_t from = row + kTile; from < end_; ++from) {
            const float* l = in_.data() + from * k_ + row;
            const float* error = rows_.row<float>(from) + col;
            for (int64_t r = 0; r < kTile; ++r)
                for (int64_t c = 0; c < kTile; ++c)
                    g[static_cast<size_t>(r * kTile + c)] += l[r] * error[c];
        }
        return g;
    }

    void add_from_right(int64_t row, int64_t col, Tile& x) const {
        const int64_t span_end = std::min(n_, col / kColumnSpan * kColumnSpan + kColumnSpan);
        for (int64_t r = 0; r < kTile; ++r) {
            float* to = x.data() + r * kTile;
            const float* sums = sums_.row<float>(row + r - begin_);
            const float* far = right_.row<float>(row + r - begin_) + col;
            for (int64_t c = 0; c < kTile; ++c) to[c] += far[c];
            for (int64_t from = col + kTile; from < span_end; ++from) {
                const float* m = out_.data() + from * n_ + col;
                for (int64_t c = 0; c < kTile; ++c) to[c] += sums[from] * m[c];
            }
        }
    }

    // A row of tiles has finished the span of columns that begins at `col`.
    void feed_left(int64_t row, int64_t col) {
        const int64_t width = std::min(kColumnSpan, n_ - col);
        ops::gemm(
            s_,
            {.a = ConstView{sums_.row<float>(row - begin_) + col, DType::f32, {kTile, width}, n_},
             .b = ConstView{out_.data() + col * n_, DType::f32, {width, col}, n_},
             .c = View{right_.row<float>(row - begin_), DType::f32, {kTile, col}, n_},
             .beta = 1});
        s_.synchronize();
    }

    Stream& s_;
    View rows_;  // targets of tiles to come, errors of tiles done
    int64_t k_, n_;
    const std::vector<float>&in_, &out_;
    TrellisKind kind_;
    uint16_t* states_;
    int64_t state_stride_;
    View fed_;           // (k, n): G, from finished spans of rows
    View sums_, right_;  // of the span: E + G, and what finished spans of columns feed
    int64_t begin_ = 0, end_ = 0;
};

}  // namespace

void round_two_sided(Stream& s, View target, const std::vector<float>& in,
                     const std::vector<float>& out, const TrellisKind& kind, uint16_t* states,
                     int64_t state_stride) {
    EXL3_CHECK(target.shape[0] % 128 == 0 && target.shape[1] % 128 == 0);
    const auto scope = s.workspace().scope();
    TwoSided(s, target, in, out, kind, states, state_stride).run();
}

}  // namespace exl3
