// The generator with models whose layers keep a state per sequence.
#include <algorithm>
#include <cstdlib>

#include "base/random.h"
#include "gen/complete.h"
#include "support/tales.h"

namespace exl3::test {
namespace {

struct Recurrent {
    TempDir dir;
    std::unique_ptr<Device> device = cpu::open({.threads = 1});
    std::shared_ptr<const Model> model;  // null: it could not be made

    explicit Recurrent(const std::string& name) {
        const std::string command = "/usr/bin/python3 " +
                                    (golden_dir() / "tiny-models/make_tiny.py").string() + " " +
                                    dir.path().string() + " " + name + " > /dev/null 2>&1";
        if (std::system(command.c_str()) != 0) return;
        const auto stream = device->make_stream();
        const Checkpoint c = Checkpoint::open(dir / name);
        model = std::make_shared<const Model>(*stream, c, describe(c));
    }
    std::vector<int32_t> tokens(uint64_t seed, size_t n) const {
        Random random(seed);
        std::vector<int32_t> ids(n);
        for (int32_t& id : ids)
            id = static_cast<int32_t>(random.below(static_cast<uint64_t>(model->spec().vocab)));
        return ids;
    }
    // The tokens that a session alone writes greedily.
    std::vector<int32_t> alone(const std::vector<int32_t>& prompt, int n) const {
        const auto stream = device->make_stream();
        Session session(*model, *stream, {.max_tokens = static_cast<int64_t>(prompt.size()) + n});
        std::vector<float> logits(static_cast<size_t>(model->spec().vocab));
        std::vector<int32_t> out;
        session.feed(prompt, logits);
        for (int i = 0; i < n; ++i) {
            out.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) -
                                               logits.begin()));
            session.feed({&out.back(), 1}, logits);
        }
        return out;
    }
    JobRequest request(std::vector<int32_t> prompt, int64_t n) const {
        return {.prompt = std::move(prompt),
                .max_new_tokens = n,
                .sampler = std::make_shared<const Sampler>(SamplerParams{.temperature = 0})};
    }
};

class RecurrentJobs : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentJobs, WriteWhatTheyWriteAloneAndReuseKeptStates) {
    const Recurrent r(GetParam());
    if (!r.model) GTEST_SKIP() << "no golden data";
    ASSERT_GT(state_layout(r.model->spec()).bytes_per_slot(), 0u);
    std::vector<std::vector<int32_t>> prompts, alone;
    for (const size_t n : {1, 40, 300, 257, 600}) {
        prompts.push_back(r.tokens(n, n));
        alone.push_back(r.alone(prompts.back(), 20));
    }
    Generator g(r.model, Tales::get().tokenizer, *r.device,
                {.cache_tokens = 2048, .max_jobs = 3, .max_drafts = 4});
    std::vector<JobHandle> jobs;
    for (const auto& p : prompts) jobs.push_back(g.submit(r.request(p, 20)));
    for (size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(wait_for(jobs[i]).ids(), alone[i]) << i;

    // Another turn starts from the last whole page of the prompt before.
    std::vector<int32_t> turn = prompts[4];
    for (const int32_t id : r.tokens(9, 30)) turn.push_back(id);
    JobHandle job = g.submit(r.request(turn, 10));
    const Outcome second = wait_for(job);
    EXPECT_EQ(second.result.cached_tokens, 512);
    EXPECT_EQ(second.ids(), r.alone(turn, 10));
}

TEST_P(RecurrentJobs, TakeTurnsAndGoBackExactly) {
    const Recurrent r(GetParam());
    if (!r.model) GTEST_SKIP() << "no golden data";
    std::vector<std::vector<int32_t>> prompts, alone;
    for (size_t i = 0; i < 3; ++i) {
        prompts.push_back(r.tokens(i, 230 + i));
        alone.push_back(r.alone(prompts.back(), 60));
    }
    Generator g(r.model, Tales::get().tokenizer, *r.device,
                {.cache_tokens = 3 * 256, .max_jobs = 3});
    std::vector<JobHandle> jobs;
    for (const auto& p : prompts) jobs.push_back(g.submit(r.request(p, 60)));
    for (size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(wait_for(jobs[i]).ids(), alone[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Tiny, RecurrentJobs,
                         testing::Values("Qwen3NextForCausalLM", "NemotronHForCausalLM",
                                         "Lfm2MoeForCausalLM"));

}  // namespace
}  // namespace exl3::test
