#include "quant/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/random.h"
#include "io/mapped_file.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

// One row in this many holds random ids.
constexpr int kRandomEvery = 12;

constexpr std::string_view kSeparator = "<|endoftext|>\n";

// All documents of a file as one stream of ids. Where the model has them, every other stretch of
// documents carries BOS and EOS, so that the model is measured with and without.
std::vector<int32_t> token_stream(const Tokenizer& t, std::string_view text) {
    std::vector<int32_t> ids;
    for (int document = 0; !text.empty(); ++document) {
        const size_t end = text.find(kSeparator);
        const std::string_view body = text.substr(0, end);
        text = end == std::string_view::npos ? "" : text.substr(end + kSeparator.size());
        if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
        const auto piece = t.encode(body, {.add_special = false, .parse_special = false});
        const bool marked = document / 4 % 2 == 0;
        if (marked && t.bos_id()) ids.push_back(*t.bos_id());
        ids.insert(ids.end(), piece.begin(), piece.end());
        if (marked && t.eos_id()) ids.push_back(*t.eos_id());
    }
    return ids;
}

std::vector<fs::path> text_files(const CalibrationOptions& options) {
    if (!options.files.empty()) return options.files;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(calibration_folder()))
        if (entry.path().extension() == ".txt") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

std::vector<std::vector<int32_t>> random_rows(int vocab, int rows, int cols, uint64_t seed) {
    std::vector<std::vector<int32_t>> out;
    for (int r = 0; r < rows; ++r) {
        Random random(noise64(seed, static_cast<uint64_t>(r)));
        auto& row = out.emplace_back(static_cast<size_t>(cols));
        for (int32_t& id : row)
            id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab)));
    }
    return out;
}

std::vector<std::vector<int32_t>> calibration_rows(const Tokenizer& tokenizer,
                                                   const CalibrationOptions& options) {
    const auto cols = static_cast<size_t>(options.cols);
    std::vector<std::vector<int32_t>> streams;
    int64_t available = 0;
    for (const fs::path& file : text_files(options)) {
        const std::string text = read_file(file).value();
        streams.push_back(token_stream(tokenizer, text));
        available += static_cast<int64_t>(streams.back().size() / cols);
    }
    if (available == 0)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("calibration text: found less than one row of {} tokens", cols));

    const int random = options.rows / kRandomEvery;
    const int64_t wanted = options.rows - random;
    std::vector<std::vector<int32_t>> rows;
    int64_t seen = 0;
    for (const auto& stream : streams) {
        const auto here = static_cast<int64_t>(stream.size() / cols);
        // Row numbers over all files are thinned evenly, so each file keeps its share.
        for (int64_t i = 0; i < here; ++i, ++seen) {
            const bool take =
                available <= wanted || (seen + 1) * wanted / available > seen * wanted / available;
            if (!take) continue;
            const auto begin = stream.begin() + i * static_cast<int64_t>(cols);
            rows.emplace_back(begin, begin + static_cast<int64_t>(cols));
        }
    }
    for (auto& row : random_rows(tokenizer.vocab_size(), random, options.cols, options.seed))
        rows.push_back(std::move(row));
    return rows;
}

fs::path calibration_folder() {
    if (const char* set = std::getenv("EXL3_CALIBRATION")) return set;
    std::error_code none;
    const fs::path program = fs::read_symlink("/proc/self/exe", none);
    const fs::path installed = program.parent_path().parent_path() / "share/exl3/calibration";
    if (fs::is_directory(installed, none)) return installed;
    for (fs::path up = program.parent_path(); up.has_relative_path(); up = up.parent_path())
        if (fs::is_directory(up / "data/calibration", none)) return up / "data/calibration";
    throw Error(
        Errc::io, {},
        "calibration text: found neither $EXL3_CALIBRATION nor share/exl3/calibration beside the "
        "program; name files with --cal-file");
}

}  // namespace exl3
