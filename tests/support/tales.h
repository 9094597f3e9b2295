#pragma once
#include <memory>
#include <string>
#include <vector>

#include "arch/arch.h"
#include "cpu/cpu.h"
#include "gen/generator.h"
#include "gen/model_defaults.h"
#include "io/mapped_file.h"
#include "support/golden.h"

namespace exl3::test {

/// The bundled model, loaded once per program.
struct Tales {
    std::unique_ptr<Device> device = cpu::open({.threads = 1});
    Tokenizer tokenizer = Tokenizer::load(folder());
    std::shared_ptr<const SamplerVocab> vocab = sampler_vocab(tokenizer);
    std::shared_ptr<const Model> model;
    std::string text = read_file(folder() / "valid.txt").value();

    static std::filesystem::path folder() { return source_dir() / "models/tales-9m"; }
    static Tales& get() {
        static Tales tales;
        return tales;
    }

    std::shared_ptr<const Sampler> sampler(SamplerParams params) const {
        return std::make_shared<const Sampler>(std::move(params), vocab);
    }
    std::shared_ptr<const Sampler> greedy() const { return sampler({.temperature = 0}); }
    /// `count` tokens of its validation text, from the `from`-th on.
    std::vector<int32_t> tokens(size_t from, size_t count) const {
        static const std::vector<int32_t> all = tokenizer.encode(text, {.add_special = false});
        return {all.begin() + static_cast<std::ptrdiff_t>(from),
                all.begin() + static_cast<std::ptrdiff_t>(from + count)};
    }

private:
    Tales() {
        const Checkpoint c = Checkpoint::open(folder());
        const auto stream = device->make_stream();
        model = std::make_shared<const Model>(*stream, c, describe(c));
    }
};

/// All that came of a job, pieces joined.
struct Outcome {
    std::string text;
    std::vector<JobToken> tokens;
    JobResult result;
    int events = 0;

    std::vector<int32_t> ids() const {
        std::vector<int32_t> v;
        for (const JobToken& t : tokens) v.push_back(t.id);
        return v;
    }
};

/// Takes what is new. True once the job has ended.
inline bool collect(JobHandle& job, Outcome& out) {
    JobEvent event;
    while (job.poll(event)) {
        ++out.events;
        out.text += event.text;
        for (JobToken& t : event.tokens) out.tokens.push_back(std::move(t));
        if (event.result) {
            out.result = *event.result;
            return true;
        }
    }
    return false;
}

/// Waits for the end of a job.
inline Outcome wait_for(JobHandle& job) {
    Outcome out;
    JobEvent event;
    while (job.wait(event, std::chrono::seconds(60))) {
        ++out.events;
        out.text += event.text;
        for (JobToken& t : event.tokens) out.tokens.push_back(std::move(t));
        if (event.result) {
            out.result = *event.result;
            return out;
        }
    }
    ADD_FAILURE() << "no news for a minute";
    return out;
}

}  // namespace exl3::test
