// The trellis kernels of a GPU: whole ops, in a graph of launches that walk over distinct weights,
// many times the second-level cache. One JSON object a line. Shares are of the copy bandwidth that
// the same run measures; packed bytes are what is counted, whatever else an op moves.
//
// bench_gpu_exl3 [device] [part ...]: decode, fused, rows, encode; all by default.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backends/backends.h"
#include "base/random.h"
#include "ops/ops.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

constexpr int64_t kPoolBytes = int64_t{1} << 30;
constexpr int64_t kMostRows = 4096, kMostChannels = 131072;

struct Bench {
    std::unique_ptr<Device> device;
    std::unique_ptr<Stream> stream;
    double copy = 0;
    Tensor pool, scales, x, up, y, norm;
    int64_t taken = 0;  ///< bytes of the pool handed out, round and round

    explicit Bench(const std::string& name)
        : device(open_device(name).value()), stream(device->make_stream()) {
        if (const auto bandwidth = measure_device_bandwidth(*device)) copy = bandwidth->copy;
        Random random(1);
        std::vector<uint64_t> words(1 << 20);
        for (auto& w : words) w = random.next();
        pool = device->make_tensor(DType::u8, {kPoolBytes});
        const auto piece = static_cast<int64_t>(words.size() * 8);
        for (int64_t at = 0; at < kPoolBytes; at += piece)
            stream->copy(dense(words.data(), DType::u8, {piece}),
                         dense(pool.view.as<char>() + at, DType::u8, {piece}));
        std::vector<f16> signs;
        for (int64_t i = 0; i < kMostChannels; ++i)
            signs.push_back(to_f16(random.next() & 1 ? 1.0f : -1.0f));
        scales = upload(signs, DType::f16, {kMostChannels});
        std::vector<float> values(static_cast<size_t>(kMostRows) * 16384);
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = i < 65536 ? static_cast<float>(random.normal()) : values[i % 65536];
        x = upload(values, DType::f32, {kMostRows, 16384});
        up = upload(values, DType::f32, {kMostRows, 16384});
        norm = upload(values, DType::f32, {16384});
        y = device->make_tensor(DType::f32, {kMostRows, 32768});
    }
    template <typename T>
    Tensor upload(const std::vector<T>& v, DType dtype, Shape shape) {
        Tensor t = device->make_tensor(dtype, shape);
        stream->copy(dense(v.data(), dtype, shape), t.view);
        stream->synchronize();
        return t;
    }
    /// The next weights of the pool: random bits are a valid layer.
    ConstView weights(int64_t k, int64_t n, int bits) {
        const int64_t bytes = k * n * bits / 8;
        if (taken + bytes > kPoolBytes) taken = 0;
        const ConstView v = dense(pool.view.as<char>() + taken, DType::i16,
                                  {k / kTile, n / kTile, tile_words(bits)});
        taken += bytes;
        return v;
    }
    ConstView scale(int64_t n) const { return dense(scales.view.data, DType::f16, {n}); }
    static View part(const Tensor& t, int64_t rows, int64_t dim, int64_t skip = 0) {
        return dense(t.view.as<float>() + skip, DType::f32, {rows, dim});
    }
    Exl3FusedMatrix matrix(int64_t k, int64_t n, int bits, Codebook codebook, View out) {
        return {.packed = weights(k, n, bits),
                .suh = scale(k),
                .svh = scale(n),
                .y = out,
                .codebook = codebook,
                .bits = bits};
    }

    /// Seconds of one `run`: `count` of them in a graph, the best of several.
    double seconds(int count, const std::function<void()>& run) {
        run();
        stream->synchronize();
        const auto graph = stream->capture([&] {
            for (int i = 0; i < count; ++i) run();
        });
        double best = 1e9;
        for (int i = 0; i < 8; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            graph->launch();
            stream->synchronize();
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
            best = std::min(best, took.count());
        }
        return best / count;
    }
    void report(const std::string& what, int64_t k, int64_t n, int bits, Codebook codebook,
                int64_t rows, double seconds) const {
        const double weights = static_cast<double>(k) * static_cast<double>(n);
        const double bytes = weights * bits / 8;
        fmt::print(R"({{"op": "{}", "k": {}, "n": {}, "bits": {}, "codebook": "{}", "rows": {}, )"
                   R"("us": {:.2f}, "gb_s": {:.0f}, "share_of_copy": {:.3f}, "gw_s": {:.0f}, )"
                   R"("tflop_s": {:.1f}}})"
                   "\n",
                   what, k, n, bits, name_of(codebook.kind), rows, seconds * 1e6,
                   bytes / seconds / 1e9, copy > 0 ? bytes / seconds / copy : 0,
                   weights / seconds / 1e9,
                   2 * weights * static_cast<double>(rows) / seconds / 1e12);
    }
    void linear(int64_t k, int64_t n, int bits, Codebook codebook, int64_t rows) {
        const double t = seconds(rows > 64 ? 4 : 50, [&] {
            ops::exl3_linear(*stream, {.x = part(x, rows, k),
                                       .packed = weights(k, n, bits),
                                       .suh = scale(k),
                                       .svh = scale(n),
                                       .y = part(y, rows, n),
                                       .codebook = codebook,
                                       .bits = bits});
        });
        report("exl3_linear", k, n, bits, codebook, rows, t);
    }
    void fused(const std::string& what, int64_t k, std::vector<int64_t> widths, int bits,
               Codebook codebook) {
        int64_t n = 0;
        for (const int64_t w : widths) n += w;
        const double t = seconds(50, [&] {
            Exl3FusedArgs a{.x = part(x, 1, k)};
            int64_t skip = 0;
            for (size_t i = 0; i < widths.size(); ++i) {
                a.matrices[i] = matrix(k, widths[i], bits, codebook, part(y, 1, widths[i], skip));
                skip += widths[i];
            }
            if (what == "norm") {
                a.norm = true;
                a.norm_weight = dense(norm.view.data, DType::f32, {k});
                a.eps = 1e-5f;
            } else {
                a.gated = true;
                a.up = part(up, 1, k);
                a.add = true;
            }
            ops::exl3_fused(*stream, a);
        });
        report("exl3_fused " + what, k, n, bits, codebook, 1, t);
    }
    void encode(int64_t tiles, int bits, Codebook codebook) {
        const Tensor states = device->make_tensor(DType::u16, {tiles, kTileSize});
        const View target = dense(x.view.data, DType::f32, {tiles, kTileSize});
        double best = 1e9;
        for (int i = 0; i < 3; ++i) {
            stream->synchronize();
            const auto begin = std::chrono::steady_clock::now();
            ops::encode_tiles(
                *stream,
                {.target = target, .states = states.view, .codebook = codebook, .bits = bits});
            stream->synchronize();
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
            best = std::min(best, took.count());
        }
        fmt::print(
            R"({{"op": "encode_tiles", "tiles": {}, "bits": {}, "codebook": "{}", "ms": {:.2f}, )"
            R"("mw_s": {:.1f}}})"
            "\n",
            tiles, bits, name_of(codebook.kind), best * 1e3,
            static_cast<double>(tiles * kTileSize) / best / 1e6);
    }
};

void run(const std::string& device, const std::set<std::string>& parts) {
    Bench b(device);
    fmt::print(R"({{"device": "{}", "copy_gb_s": {:.0f}}})"
               "\n",
               device, b.copy / 1e9);
    const auto wanted = [&](const char* part) { return parts.empty() || parts.contains(part); };
    if (wanted("decode"))
        for (const Codebook codebook : {kMul1, kMcg})
            for (const int bits : {1, 2, 3, 4, 5, 6, 7, 8})
                for (const auto& [k, n] :
                     {std::pair<int64_t, int64_t>{4096, 4096}, {4096, 28672}, {14336, 4096}})
                    b.linear(k, n, bits, codebook, 1);
    if (wanted("fused"))
        for (const int bits : {2, 3, 4, 6}) {
            b.fused("norm", 4096, {4096, 1024, 1024}, bits, kMul1);
            b.fused("norm", 4096, {14336, 14336}, bits, kMul1);
            b.fused("gated", 14336, {4096}, bits, kMul1);
        }
    if (wanted("rows"))
        for (const Codebook codebook : {kMul1, kMcg})
            for (const int64_t rows : {2, 4, 8, 16, 32, 64, 128, 256, 512, 4096})
                for (const auto& [k, n] :
                     {std::pair<int64_t, int64_t>{4096, 4096}, {4096, 14336}, {14336, 4096}})
                    b.linear(k, n, 4, codebook, rows);
    if (wanted("encode"))
        for (const Codebook codebook : {kMul1, kMcg})
            for (int bits = 1; bits <= 8; ++bits) b.encode(4096, bits, codebook);
}

}  // namespace
}  // namespace exl3

int main(int argc, char** argv) {
    try {
        const std::string device = argc > 1 ? argv[1] : "cuda:0";
        exl3::run(device, std::set<std::string>(argv + std::min(argc, 2), argv + argc));
    } catch (const std::exception& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return 1;
    }
}
