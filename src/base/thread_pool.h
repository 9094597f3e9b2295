#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace exl3 {

/// A fixed set of workers that share loops. The caller takes part, so `threads` = 1 starts none.
/// One loop at a time, from one thread at a time; a loop inside a loop, or beside one, is a
/// caller's bug and aborts, whatever the number of threads.
class ThreadPool {
public:
    /// @param threads  0: one per core this process may use
    /// @param pin      bind worker i to the i-th allowed core when there are enough of them
    explicit ThreadPool(int threads = 0, bool pin = true);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const { return static_cast<int>(workers_.size()) + 1; }

    /// Calls fn(begin, end) over [0, n) in pieces of `grain`. Pieces are the same for any thread
    /// count, and thread t always gets the same contiguous range of them, so results and the
    /// pages each thread touches do not vary. fn must not throw.
    template <typename Fn>
    void parallel_for(int64_t n, int64_t grain, Fn&& fn) {
        using F = std::remove_reference_t<Fn>;
        run(
            n, grain, [](void* f, int64_t b, int64_t e) { (*static_cast<F*>(f))(b, e); },
            const_cast<void*>(static_cast<const void*>(&fn)));
    }

    /// Cores this process may use.
    static int available_cores();

private:
    using Piece = void (*)(void* fn, int64_t begin, int64_t end);
    void run(int64_t n, int64_t grain, Piece piece, void* fn);
    void share(int index);
    void work(const std::stop_token& stop, int index);

    struct Loop {
        int64_t n = 0, grain = 1;
        Piece piece = nullptr;
        void* fn = nullptr;
    } loop_;
    std::atomic<bool> busy_{false};  // a loop is running
    alignas(64) std::atomic<uint32_t> generation_{
        0};                                    // counts loops: workers wait for it to change
    alignas(64) std::atomic<int> pending_{0};  // workers not yet done with the current loop
    std::vector<std::jthread> workers_;
};

}  // namespace exl3
