// Token masks of constrained output, by CPU time of one thread: compiling a schema, the first
// answer (masks are worked out) and later ones (they are remembered).
// The demo model's vocabulary is always measured; EXL3_BENCH_TOKENIZERS names a folder of further
// tokenizers, each a folder with tokenizer.json.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "grammar/constraint.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = R"({"type": "object", "properties": {
  "name": {"type": "string", "maxLength": 60}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
  "email": {"type": "string", "format": "email"}, "score": {"type": "number"},
  "kind": {"enum": ["person", "company", "other"]},
  "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
  "address": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
              "required": ["city"]}}, "required": ["name", "kind", "tags"]})";
constexpr const char* kAnswer =
    R"({"name": "Ann-Marie Smith", "age": 42, "email": "ann@example.com", "score": 0.75, "kind": "person",
  "tags": ["reader", "long-standing customer", "unusual wishes, 3 of them"], "address": {"city": "Gen\u00e8ve", "zip": "12034"}})";

void first(benchmark::State& s, const Tokenizer& t, std::shared_ptr<const TokenTrie> trie) {
    for (auto _ : s) {
        ConstraintState state(Constraint::json_schema(parse_json(kSchema, "").value(), trie));
        TokenMask mask;
        for (const int32_t id : t.encode(kAnswer, {.add_special = false})) {
            state.mask(mask);
            if (!mask.allows(id) || !state.accept(id)) s.SkipWithError("a token is refused");
        }
    }
}

void later(benchmark::State& s, const Tokenizer& t, std::shared_ptr<const TokenTrie> trie) {
    const auto c = Constraint::json_schema(parse_json(kSchema, "").value(), trie);
    const auto ids = t.encode(kAnswer, {.add_special = false});
    TokenMask mask;
    for (auto _ : s) {
        ConstraintState state(c);
        for (const int32_t id : ids) {
            state.mask(mask);
            state.accept(id);
        }
    }
    s.counters["us_per_token"] = benchmark::Counter(
        static_cast<double>(ids.size()) * 1e-6,
        benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void compile(benchmark::State& s, std::shared_ptr<const TokenTrie> trie) {
    for (auto _ : s)
        benchmark::DoNotOptimize(Constraint::json_schema(parse_json(kSchema, "").value(), trie));
}

}  // namespace
}  // namespace exl3

int main(int argc, char** argv) {
    using namespace exl3;
    std::map<std::string, fs::path> found = {{"tales-9m", EXL3_SOURCE_DIR "/models/tales-9m"}};
    if (const char* more = std::getenv("EXL3_BENCH_TOKENIZERS"))
        for (const auto& entry : fs::directory_iterator(more))
            if (fs::exists(entry.path() / "tokenizer.json"))
                found[entry.path().filename().string()] = entry.path();
    for (const auto& [name, folder] : found) {
        const Tokenizer t = Tokenizer::load(folder);
        const auto trie = TokenTrie::of(t, {t.eos_id().value_or(0)});
        const std::string of = name + " (" + std::to_string(t.vocab_size()) + " tokens)";
        benchmark::RegisterBenchmark(("compile/" + of).c_str(),
                                     [=](benchmark::State& s) { compile(s, trie); });
        benchmark::RegisterBenchmark(("first_answer/" + of).c_str(), [=](benchmark::State& s) {
            first(s, t, trie);
        })->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("later_answers/" + of).c_str(),
                                     [=](benchmark::State& s) { later(s, t, trie); });
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
