// What happens to jobs when the device fails.
#include <gtest/gtest.h>

#include <atomic>

#include "ops/ops.h"
#include "ref/ref.h"
#include "support/tales.h"

namespace exl3::ref {
void attention(Stream&, const AttentionArgs&);
}

namespace exl3::test {
namespace {

std::atomic<bool> broken{false};    // every pass fails
std::atomic<int64_t> most_rows{0};  // larger passes find no memory; 0: any number

void failing_attention(Stream& s, const AttentionArgs& a) {
    if (broken) throw Error(Errc::device, {}, "attention: the device fell off the bus");
    if (most_rows > 0 && a.q.shape[0] > most_rows)
        throw Error(Errc::out_of_memory, {}, "attention: no memory");
    ref::attention(s, a);
}

struct FailingDevice final : Device {
    OpTable table = [] {
        OpTable t = ref::table();
        t.attention = failing_attention;
        return t;
    }();
    std::string name() const override { return "failing"; }
    Buffer allocate(size_t bytes) override { return allocate_host(bytes); }
    std::unique_ptr<Stream> make_stream() override { return std::make_unique<HostStream>(*this); }
    const OpTable& ops() const override { return table; }
};

struct OnFailingDevice {
    FailingDevice device;
    std::shared_ptr<const Model> model;
    OnFailingDevice() {
        broken = false;
        most_rows = 0;
        const Checkpoint c = Checkpoint::open(Tales::folder());
        const auto stream = device.make_stream();
        model = std::make_shared<const Model>(*stream, c, describe(c));
    }
};

JobRequest request(size_t from, size_t prompt, int64_t n) {
    Tales& t = Tales::get();
    return {.prompt = t.tokens(from, prompt), .max_new_tokens = n, .sampler = t.greedy()};
}

TEST(Failure, ADeviceThatFailsEndsTheRunningJobsAndTheNextOnesWork) {
    OnFailingDevice f;
    Generator g(f.model, Tales::get().tokenizer, f.device, {.cache_tokens = 1024});
    JobHandle good = g.submit(request(0, 3, 3));
    const std::string text = wait_for(good).text;
    broken = true;
    JobHandle a = g.submit(request(0, 3, 3)), b = g.submit(request(50, 4, 3));
    for (JobHandle* job : {&a, &b}) {
        const Outcome o = wait_for(*job);
        EXPECT_EQ(o.result.end, JobEnd::error);
        ASSERT_TRUE(o.result.error);
        EXPECT_EQ(o.result.error->code(), Errc::device);
    }
    EXPECT_FALSE(g.stats().healthy);
    broken = false;
    JobHandle again = g.submit(request(0, 3, 3));
    EXPECT_EQ(wait_for(again).text, text);
    EXPECT_TRUE(g.stats().healthy);
    EXPECT_EQ(g.stats().pages_in_use, 0);
}

TEST(Failure, WantOfMemoryEndsOnlyTheJobThatIsTooLarge) {
    OnFailingDevice f;
    Generator g(f.model, Tales::get().tokenizer, f.device, {.cache_tokens = 1024});
    most_rows = 6;
    JobHandle small = g.submit(request(0, 4, 4)), large = g.submit(request(100, 9, 4)),
              other = g.submit(request(200, 5, 4));
    const Outcome failed = wait_for(large);
    EXPECT_EQ(failed.result.end, JobEnd::error);
    ASSERT_TRUE(failed.result.error);
    EXPECT_EQ(failed.result.error->code(), Errc::out_of_memory);
    EXPECT_EQ(wait_for(small).result.end, JobEnd::max_new_tokens);
    EXPECT_EQ(wait_for(other).result.end, JobEnd::max_new_tokens);
}

}  // namespace
}  // namespace exl3::test
