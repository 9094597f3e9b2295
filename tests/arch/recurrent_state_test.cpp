// The recurrent state of every hybrid architecture, kept, copied, saved and restored in the middle
// of a text, on the tiny models of the golden data.
#include <gtest/gtest.h>

#include <numeric>

#include "arch/arch.h"
#include "cpu/cpu.h"
#include "gen/session.h"
#include "support/golden.h"
#include "support/tiny_models.h"

namespace exl3::test {
namespace {

constexpr int kSlots = 3, kPages = 2;

/// A model with room for three sequences, each with a page table of its own.
class Runner {
public:
    explicit Runner(const std::filesystem::path& folder)
        : device_(cpu::open({.threads = 1})),
          stream_(device_->make_stream()),
          model_(load(*stream_, folder)),
          cache_(*device_, kv_layout(model_.spec()), kSlots * kPages),
          states_(*device_, state_layout(model_.spec()), kSlots) {}

    struct Piece {
        int slot = 0;
        int pages = 0;  // which page table
        int past = 0;
        std::span<const int32_t> tokens;
    };
    /// One pass over pieces of several sequences; the logits of the last token of each.
    std::vector<std::vector<float>> run(const std::vector<Piece>& pieces) {
        std::vector<int32_t> ids, positions, start = {0}, length, pages, slots;
        for (const Piece& p : pieces) {
            for (size_t i = 0; i < p.tokens.size(); ++i)
                positions.push_back(p.past + static_cast<int32_t>(i));
            ids.insert(ids.end(), p.tokens.begin(), p.tokens.end());
            start.push_back(static_cast<int32_t>(ids.size()));
            length.push_back(p.past + static_cast<int32_t>(p.tokens.size()));
            for (int i = 0; i < kPages; ++i) pages.push_back(p.pages * kPages + i);
            slots.push_back(p.slot);
        }
        Workspace& w = stream_->workspace();
        const auto scope = w.scope();
        const auto upload = [&](const std::vector<int32_t>& v, Shape shape) {
            const View view = w.take(DType::i32, shape);
            stream_->copy(dense(v.data(), DType::i32, shape), view);
            return view;
        };
        const auto n = static_cast<int64_t>(pieces.size()),
                   tokens = static_cast<int64_t>(ids.size());
        const Batch batch{.tokens = upload(ids, {tokens}),
                          .positions = upload(positions, {tokens}),
                          .seq = {.q_start = upload(start, {n + 1}),
                                  .kv_len = upload(length, {n}),
                                  .pages = upload(pages, {n, kPages})},
                          .cache = &cache_,
                          .slots = upload(slots, {n}),
                          .states = &states_,
                          .rope_length = kPages * kPageTokens};
        const View x = w.take(DType::f32, {tokens, model_.spec().hidden});
        model_.hidden(*stream_, batch, x);
        std::vector<std::vector<float>> out;
        for (int64_t i = 0; i < n; ++i) {
            auto& row = out.emplace_back(static_cast<size_t>(model_.spec().vocab));
            model_.logits(*stream_, slice_rows(x, start[static_cast<size_t>(i) + 1] - 1, 1),
                          dense(row.data(), DType::f32, {1, model_.spec().vocab}));
        }
        return out;
    }
    std::vector<float> one(const Piece& piece) { return run({piece})[0]; }
    StateCache& states() { return states_; }
    Stream& stream() { return *stream_; }
    const Model& model() const { return model_; }

private:
    static Model load(Stream& s, const std::filesystem::path& folder) {
        const Checkpoint c = Checkpoint::open(folder);
        return {s, c, describe(c)};
    }
    std::unique_ptr<Device> device_;
    std::unique_ptr<Stream> stream_;
    Model model_;
    PagedCache cache_;
    StateCache states_;
};

class RecurrentState : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        folder_ = tiny_model(GetParam());
        if (folder_.empty()) GTEST_SKIP() << "no golden data";
        ids_ = load_json(golden_dir() / "tiny-models/manifest.json")
                   .at("ids")
                   .get<std::vector<int32_t>>();
    }
    std::span<const int32_t> ids(size_t begin, size_t count) const {
        return std::span(ids_).subspan(begin, count);
    }
    std::filesystem::path folder_;
    std::vector<int32_t> ids_;
};

TEST_P(RecurrentState, CopiesAndSavedOnesContinueAlike) {
    Runner r(folder_);
    StateCache& states = r.states();
    r.one({.tokens = ids(0, 41)});
    std::vector<std::byte> saved(states.bytes_per_slot());
    ASSERT_GT(saved.size(), 0u);
    states.save(r.stream(), 0, saved);
    states.copy(r.stream(), 0, 1);
    const auto want = r.one({.past = 41, .tokens = ids(41, 19)});
    // The state has moved on, so the same tokens now give something else.
    EXPECT_NE(r.one({.past = 41, .tokens = ids(41, 19)}), want);
    EXPECT_EQ(r.one({.slot = 1, .past = 41, .tokens = ids(41, 19)}), want);
    states.reset(r.stream(), 2);
    EXPECT_NE(r.one({.slot = 2, .past = 41, .tokens = ids(41, 19)}), want);
    states.restore(r.stream(), 2, saved);
    EXPECT_EQ(r.one({.slot = 2, .past = 41, .tokens = ids(41, 19)}), want);
}

TEST_P(RecurrentState, ANewSequenceMayTakeOverASlot) {
    Runner r(folder_);
    const auto want = r.one({.tokens = ids(0, 30)});
    r.one({.past = 30, .tokens = ids(30, 9)});
    EXPECT_EQ(r.one({.tokens = ids(0, 30)}), want);
}

TEST_P(RecurrentState, SequencesOfABatchDoNotMix) {
    Runner r(folder_);
    const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
        return relative_error(a.data(), b.data(), b.size());
    };
    // Alone: 20 tokens and one more; 33 tokens and one more; a third text in one pass.
    const auto a = r.one({.tokens = ids(0, 21)}), b = r.one({.tokens = ids(40, 34)}),
               c = r.one({.tokens = ids(5, 50)});
    r.run({{.slot = 2, .pages = 0, .tokens = ids(0, 20)},
           {.slot = 0, .pages = 1, .tokens = ids(40, 33)}});
    const auto got = r.run({{.slot = 0, .pages = 1, .past = 33, .tokens = ids(73, 1)},
                            {.slot = 1, .pages = 2, .tokens = ids(5, 50)},
                            {.slot = 2, .pages = 0, .past = 20, .tokens = ids(20, 1)}});
    EXPECT_LT(near(got[0], b), 1e-3);
    EXPECT_LT(near(got[1], c), 1e-3);
    EXPECT_LT(near(got[2], a), 1e-3);
}

TEST_P(RecurrentState, ASessionReturnsToWhatItKept) {
    Runner r(folder_);
    Session session(r.model(), r.stream(), {.max_tokens = 100});
    std::vector<float> logits(static_cast<size_t>(r.model().spec().vocab)), again(logits.size());
    session.feed(ids(0, 30), logits);
    session.feed(ids(30, 20), logits);
    session.feed(ids(50, 1), again);
    EXPECT_EQ(session.truncate(40), 30);
    session.feed(ids(30, 20), again);
    EXPECT_EQ(again, logits);
    EXPECT_EQ(session.truncate(29), 0);
    session.feed(ids(0, 30), again);
    session.feed(ids(30, 20), again);
    EXPECT_EQ(again, logits);
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentState,
                         testing::Values("Qwen3NextForCausalLM", "Qwen3_5ForCausalLM",
                                         "OlmoHybridForCausalLM", "NemotronHForCausalLM",
                                         "Lfm2MoeForCausalLM"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace exl3::test
