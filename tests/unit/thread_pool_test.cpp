#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <vector>

namespace exl3::test {

TEST(ThreadPool, EveryIndexIsVisitedOnceInPiecesOfTheGrain) {
    for (const int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
        for (const int64_t n : {0, 1, 2, 7, 8, 63, 64, 65, 1000})
            for (const int64_t grain : {0, 1, 2, 3, 7, 64, 999, 1000, 5000}) {
                const int64_t step = std::max<int64_t>(grain, 1);
                std::vector<int> visits(static_cast<size_t>(n));
                std::atomic<int64_t> pieces = 0;
                pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
                    // Written without a lock: two visits of one index would be a race.
                    EXPECT_EQ(begin % step, 0);
                    EXPECT_EQ(end, std::min(n, begin + step));
                    for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
                    ++pieces;
                });
                EXPECT_EQ(pieces, (n + step - 1) / step);
                EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), n)
                    << n << " in " << grain << " on " << threads;
            }
    }
}

// Memory a thread touched first stays with it: the pieces of a thread are one run, in order, and
// the same in every loop.
TEST(ThreadPool, AThreadAlwaysGetsTheSameRun) {
    constexpr int64_t kPieces = 100;
    ThreadPool pool(3);
    std::vector<std::thread::id> first(kPieces);
    for (int round = 0; round < 20; ++round) {
        std::vector<std::thread::id> owner(kPieces);
        pool.parallel_for(kPieces, 1, [&](int64_t begin, int64_t) {
            owner[static_cast<size_t>(begin)] = std::this_thread::get_id();
        });
        int runs = 1;
        for (size_t i = 1; i < owner.size(); ++i) runs += owner[i] != owner[i - 1];
        EXPECT_EQ(runs, 3);
        EXPECT_EQ(owner[0], std::this_thread::get_id());
        if (round == 0) first = owner;
        EXPECT_EQ(owner, first);
    }
}

// What a loop wrote is there for the next one, on whichever thread, and for the caller.
TEST(ThreadPool, LoopsSeeWhatEarlierLoopsWrote) {
    constexpr int64_t kCount = 64, kRounds = 2000;
    ThreadPool pool(4);
    std::vector<int64_t> x(kCount), y(kCount);
    std::iota(x.begin(), x.end(), 0);
    for (int64_t round = 0; round < kRounds; ++round) {
        pool.parallel_for(kCount, 1, [&](int64_t i, int64_t) {
            y[static_cast<size_t>(i)] = x[static_cast<size_t>((i + 17) % kCount)] + 1;
        });
        std::swap(x, y);
    }
    for (int64_t i = 0; i < kCount; ++i)
        EXPECT_EQ(x[static_cast<size_t>(i)], (i + kRounds * 17) % kCount + kRounds);
}

// Workers have gone to sleep in the kernel when a loop comes this late.
TEST(ThreadPool, WakesSleepingWorkers) {
    ThreadPool pool(4);
    for (int round = 0; round < 20; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::atomic<int> sum = 0;
        pool.parallel_for(40, 1, [&](int64_t, int64_t) { ++sum; });
        ASSERT_EQ(sum, 40);
    }
}

TEST(ThreadPool, UnevenPiecesDelayNobodyForever) {
    ThreadPool pool(3);
    for (int round = 0; round < 5; ++round) {
        std::atomic<int> sum = 0;
        pool.parallel_for(9, 1, [&](int64_t i, int64_t) {
            if (i % 3 == round % 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ++sum;
        });
        ASSERT_EQ(sum, 9);
    }
}

TEST(ThreadPool, ComesAndGoesAtOnce) {
    for (int round = 0; round < 200; ++round) {
        ThreadPool pool(1 + round % 5);
        if (round % 3 == 0) continue;  // destroyed before its workers have started
        std::atomic<int> sum = 0;
        pool.parallel_for(round % 7, 1, [&](int64_t, int64_t) { ++sum; });
        ASSERT_EQ(sum, round % 7);
    }
}

TEST(ThreadPool, SeveralPoolsRunSideBySide) {
    std::vector<std::jthread> owners;
    std::atomic<int64_t> sum = 0;
    for (int t = 0; t < 3; ++t)
        owners.emplace_back([&] {
            ThreadPool pool(2);
            for (int round = 0; round < 200; ++round)
                pool.parallel_for(10, 1, [&](int64_t i, int64_t) { sum += i; });
        });
    owners.clear();
    EXPECT_EQ(sum, 3 * 200 * 45);
}

// An owner may hand the pool to another thread between loops.
TEST(ThreadPool, TheCallerMayChange) {
    ThreadPool pool(3);
    int64_t sum = 0;
    for (int round = 0; round < 20; ++round)
        std::jthread([&] {
            std::mutex mutex;
            pool.parallel_for(12, 1, [&](int64_t i, int64_t) {
                const std::lock_guard lock(mutex);
                sum += i;
            });
        }).join();
    EXPECT_EQ(sum, 20 * 66);
}

TEST(ThreadPool, DefaultUsesTheCoresOfThisProcess) {
    EXPECT_GE(ThreadPool::available_cores(), 1);
    EXPECT_EQ(ThreadPool().threads(), ThreadPool::available_cores());
}

TEST(ThreadPoolDeathTest, LoopsDoNotNest) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const int threads : {1, 2})
        EXPECT_DEATH(
            {
                ThreadPool pool(threads);
                pool.parallel_for(4, 1, [&](int64_t, int64_t) {
                    pool.parallel_for(1, 1, [](int64_t, int64_t) {});
                });
            },
            "neither nest nor overlap");
}

}  // namespace exl3::test
