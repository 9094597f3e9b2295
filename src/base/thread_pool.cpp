#include "base/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace exl3 {
namespace {

// Waits in the step loop are a few microseconds; past this a sleep in the kernel costs less than
// the core it frees.
constexpr auto kSpin = std::chrono::microseconds(20);

std::vector<int> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &set)) cores.push_back(i);
    if (cores.empty()) cores.push_back(0);
    return cores;
}

template <typename T>
void wait_while_equal(const std::atomic<T>& value, T old) {
    const auto end = std::chrono::steady_clock::now() + kSpin;
    while (value.load(std::memory_order_acquire) == old) {
        for (int i = 0; i < 32; ++i) _mm_pause();
        if (std::chrono::steady_clock::now() > end) {
            value.wait(old, std::memory_order_acquire);
            return;
        }
    }
}

struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
};

}  // namespace

int ThreadPool::available_cores() {
    return static_cast<int>(allowed_cores().size());
}

ThreadPool::ThreadPool(int threads, bool pin) {
    const std::vector<int> cores = allowed_cores();
    if (threads <= 0) threads = static_cast<int>(cores.size());
    pin = pin && threads > 1 && threads <= static_cast<int>(cores.size());
    for (int i = 1; i < threads; ++i) {
        workers_.emplace_back([this, i](const std::stop_token& stop) { work(stop, i); });
        if (pin) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(cores[static_cast<size_t>(i)], &set);
            // Pinning is a help, not a need: a container may refuse it.
            pthread_setaffinity_np(workers_.back().native_handle(), sizeof set, &set);
        }
    }
}

ThreadPool::~ThreadPool() {
    for (auto& w : workers_) w.request_stop();
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
}

void ThreadPool::share(int index) {
    const Loop& loop = loop_;
    const int64_t pieces = (loop.n + loop.grain - 1) / loop.grain, count = threads();
    const int64_t begin = pieces * index / count, end = pieces * (index + 1) / count;
    for (int64_t p = begin; p < end; ++p)
        loop.piece(loop.fn, p * loop.grain, std::min(loop.n, (p + 1) * loop.grain));
}

void ThreadPool::run(int64_t n, int64_t grain, Piece piece, void* fn) {
    if (n <= 0) return;
    EXL3_CHECK(!busy_.exchange(true, std::memory_order_acquire),
               "loops of one pool neither nest nor overlap");
    const Release release{busy_};
    loop_ = {n, std::max<int64_t>(grain, 1), piece, fn};
    if (workers_.empty() || n <= loop_.grain) {
        for (int64_t b = 0; b < n; b += loop_.grain) piece(fn, b, std::min(n, b + loop_.grain));
        return;
    }
    pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    share(0);
    for (int left = pending_.load(std::memory_order_acquire); left != 0;
         left = pending_.load(std::memory_order_acquire))
        wait_while_equal(pending_, left);
}

void ThreadPool::work(const std::stop_token& stop, int index) {
    uint32_t seen = 0;
    while (true) {
        wait_while_equal(generation_, seen);
        seen = generation_.load(std::memory_order_acquire);
        if (stop.stop_requested()) return;
        share(index);
        if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_all();
    }
}

}  // namespace exl3
