#include "cpu/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "core/buffer.h"

namespace exl3::cpu {
namespace {

constexpr size_t kBytes = size_t{256} << 20;
constexpr size_t kPiece = size_t{1} << 20;
constexpr int kSweeps = 5;

template <typename Work>
double best_seconds(const Work& work) {
    double best = 1e30;
    for (int i = 0; i < kSweeps; ++i) {
        const auto start = std::chrono::steady_clock::now();
        work();
        best = std::min(
            best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

// Eight running sums: the additions of one never wait for another's loads.
uint64_t sum_of(const std::byte* data, size_t bytes) {
    uint64_t sums[8] = {};
    for (size_t i = 0; i + 64 <= bytes; i += 64) {
        uint64_t line[8];
        std::memcpy(line, data + i, sizeof line);
        for (int j = 0; j < 8; ++j) sums[j] += line[j];
    }
    uint64_t sum = 0;
    for (const uint64_t s : sums) sum += s;
    return sum;
}

}  // namespace

MemoryBandwidth measure_bandwidth(ThreadPool& pool) {
    const Buffer a = allocate_host(kBytes), b = allocate_host(kBytes);
    auto* from = static_cast<std::byte*>(a.data());
    auto* to = static_cast<std::byte*>(b.data());
    constexpr auto kPieces = static_cast<int64_t>(kBytes / kPiece);
    const auto each_piece = [&](auto&& work) {
        pool.parallel_for(kPieces, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) work(static_cast<size_t>(i) * kPiece);
        });
    };
    each_piece([&](size_t at) {
        std::memset(from + at, 1, kPiece);
        std::memset(to + at, 2, kPiece);
    });
    std::atomic<uint64_t> sink{0};
    const double read = best_seconds([&] {
        each_piece([&](size_t at) {
            sink.fetch_add(sum_of(from + at, kPiece), std::memory_order_relaxed);
        });
    });
    const double copy = best_seconds(
        [&] { each_piece([&](size_t at) { std::memcpy(to + at, from + at, kPiece); }); });
    return {static_cast<double>(kBytes) / read, 2.0 * static_cast<double>(kBytes) / copy};
}

}  // namespace exl3::cpu
