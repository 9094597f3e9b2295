// Tokenizers: loading, encoding, decoding and worst cases, by CPU time of one thread.
// The demo model is always measured; EXL3_BENCH_TOKENIZERS names a folder of further ones, each a
// folder with tokenizer.json (unpack tests' golden tokenizers there).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/mapped_file.h"
#include "text/tokenizer.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

std::map<std::string, fs::path> tokenizers() {
    std::map<std::string, fs::path> found = {{"tales-9m", EXL3_SOURCE_DIR "/models/tales-9m"}};
    if (const char* more = std::getenv("EXL3_BENCH_TOKENIZERS"))
        for (const auto& entry : fs::directory_iterator(more))
            if (fs::exists(entry.path() / "tokenizer.json"))
                found[entry.path().filename().string()] = entry.path();
    return found;
}

std::map<std::string, std::string> texts() {
    std::map<std::string, std::string> found;
    for (const char* name : {"prose", "code-and-data", "multilingual"})
        found[name] =
            read_file(fs::path(EXL3_SOURCE_DIR "/data/calibration") / (std::string(name) + ".txt"))
                .value();
    const size_t mega = size_t{1} << 20;
    found["worst/spaces"] = std::string(mega, ' ');
    found["worst/newlines"] = std::string(mega, '\n');
    found["worst/letters"] = std::string(mega, 'a');
    found["worst/digits"] = std::string(mega, '7');
    std::string& marks = found["worst/marks"];
    while (marks.size() < mega) marks += marks.size() % 4 ? "\xCC\xA3" : "\xCC\x81";
    std::string& base64 = found["worst/base64"];
    for (uint64_t x = 1; base64.size() < mega; x = x * 6364136223846793005u + 1)
        base64 += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[x >> 58];
    return found;
}

void set_rate(benchmark::State& state, size_t bytes) {
    state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}

void load(benchmark::State& state, const fs::path& folder) {
    for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::load(folder).vocab_size());
}

// Every pass with empty caches, as a server's first request has it.
void encode_cold(benchmark::State& state, const fs::path& folder, const std::string& text) {
    for (auto _ : state) {
        state.PauseTiming();
        const Tokenizer tokenizer = Tokenizer::load(folder);
        tokenizer.encode("a");
        state.ResumeTiming();
        benchmark::DoNotOptimize(tokenizer.encode(text).size());
    }
    set_rate(state, text.size());
}

void encode_warm(benchmark::State& state, const fs::path& folder, const std::string& text) {
    const Tokenizer tokenizer = Tokenizer::load(folder);
    for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text).size());
    set_rate(state, text.size());
}

void decode(benchmark::State& state, const fs::path& folder, const std::string& text) {
    const Tokenizer tokenizer = Tokenizer::load(folder);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(ids).size());
    state.SetItemsProcessed(static_cast<int64_t>(ids.size()) * state.iterations());
}

void stream(benchmark::State& state, const fs::path& folder, const std::string& text) {
    const Tokenizer tokenizer = Tokenizer::load(folder);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    for (auto _ : state) {
        StreamDecoder decoder(tokenizer);
        for (const int32_t id : ids) benchmark::DoNotOptimize(decoder.push(id));
    }
    state.SetItemsProcessed(static_cast<int64_t>(ids.size()) * state.iterations());
}

}  // namespace
}  // namespace exl3

int main(int argc, char** argv) {
    using namespace exl3;  // NOLINT(google-build-using-namespace): of this program alone
    const auto ms = [](auto* b) { b->Unit(benchmark::kMillisecond); };
    const auto all_texts = texts();
    for (const auto& [name, folder] : tokenizers()) {
        ms(benchmark::RegisterBenchmark(("load/" + name).c_str(), load, folder));
        const auto& prose = all_texts.at("prose");
        ms(benchmark::RegisterBenchmark(("decode/" + name).c_str(), decode, folder, prose));
        ms(benchmark::RegisterBenchmark(("stream/" + name).c_str(), stream, folder, prose));
        for (const auto& [kind, text] : all_texts) {
            const std::string what = name + "/" + kind;
            if (kind == "prose")
                ms(benchmark::RegisterBenchmark(("cold/" + what).c_str(), encode_cold, folder, text)
                       ->Iterations(3));
            ms(benchmark::RegisterBenchmark(("warm/" + what).c_str(), encode_warm, folder, text));
        }
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
