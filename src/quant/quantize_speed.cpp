#include "quant/quantize_speed.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/random.h"
#include "ops/ops.h"
#include "quant/quantize_linear.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

double seconds_of(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<float> normal(int64_t n, uint64_t seed) {
    Random random(seed);
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = static_cast<float>(random.normal());
    return v;
}

Tensor upload(Stream& s, const std::vector<float>& v, Shape shape) {
    Tensor t = s.device().make_tensor(DType::f32, shape);
    s.copy(dense(v.data(), DType::f32, shape), t.view);
    return t;
}

// The mean squared error of `got` as an estimate of `want`, times whatever factor suits best.
double scaled_mse(const std::vector<float>& want, const std::vector<float>& got) {
    double ww = 0, gg = 0, wg = 0;
    for (size_t i = 0; i < want.size(); ++i) {
        ww += static_cast<double>(want[i]) * want[i];
        gg += static_cast<double>(got[i]) * got[i];
        wg += static_cast<double>(want[i]) * got[i];
    }
    return gg > 0 ? (ww - wg * wg / gg) / static_cast<double>(want.size()) : 0;
}

void measure_encoder(Stream& s, int bits, Codebook codebook, QuantizeSpeed& v) {
    // Many tiles, so that every thread has several; repeated until a second has passed.
    constexpr int64_t kTiles = 512;
    const std::vector<float> target = normal(kTiles * kTileSize, 1);
    const Tensor x = upload(s, target, {kTiles, kTileSize});
    const Tensor states = s.device().make_tensor(DType::u16, {kTiles, kTileSize});
    const Tensor values = s.device().make_tensor(DType::f32, {kTiles, kTileSize});
    const auto encode = [&] {
        ops::encode_tiles(s, {.target = x.view,
                              .states = states.view,
                              .values = values.view,
                              .codebook = codebook,
                              .bits = bits});
        s.synchronize();
    };
    double best = 1e30, total = 0;
    while (total < 1) {
        const double t = seconds_of(encode);
        best = std::min(best, t);
        total += t;
    }
    std::vector<float> got(target.size());
    s.copy(values.view, dense(got.data(), DType::f32, {kTiles, kTileSize}));
    s.synchronize();
    v.encode = static_cast<double>(target.size()) / best;
    v.encode_mse = scaled_mse(target, got);
}

void measure_matrix(Stream& s, int bits, Codebook codebook, QuantizeSpeed& v) {
    v.k = v.n = 1024;
    const int64_t rows = 2 * v.k;
    const Tensor x = upload(s, normal(rows * v.k, 2), {rows, v.k});
    const Tensor weight = upload(s, normal(v.k * v.n, 3), {v.k, v.n});
    Hessian hessian(v.k);
    v.hessian_rows = static_cast<double>(rows) / seconds_of([&] {
                         hessian.add(s, x.view);
                         s.synchronize();
                     });
    const FinalHessian final = finalize(std::move(hessian));
    const double seconds = seconds_of([&] {
        v.proxy_err =
            quantize_linear(s, weight.view, &final, {.bits = bits, .codebook = codebook}).proxy_err;
    });
    v.matrix = static_cast<double>(v.k * v.n) / seconds;
}

}  // namespace

QuantizeSpeed measure_quantize_speed(Stream& s, int bits, Codebook codebook,
                                     const std::function<void()>& between) {
    QuantizeSpeed v;
    measure_encoder(s, bits, codebook, v);
    between();
    measure_matrix(s, bits, codebook, v);
    return v;
}

}  // namespace exl3
