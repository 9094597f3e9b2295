// The main() of a fuzz target without libFuzzer: runs it on every file of the folders given, and on
// every shorter piece of each, since a file cut short is the most common damage.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "support/tiny_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run(std::string_view bytes) {
    // A copy of exactly this size, so that a sanitizer sees a read past its end.
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
    constexpr size_t kMostPieces = 2048;  // of one file; a longer one is cut at as many places
    int files = 0;
    for (int i = 1; i < argc; ++i)
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            if (!entry.is_regular_file()) continue;
            const std::string bytes = exl3::test::read_all(entry.path());
            std::printf("%s\n", entry.path().c_str());
            std::fflush(stdout);  // the last line printed names the file that crashes
            run(bytes);
            const size_t step = bytes.size() / kMostPieces + 1;
            for (size_t n = 0; n < bytes.size(); n += step)
                run(std::string_view(bytes).substr(0, n));
            ++files;
        }
    std::printf("%d files\n", files);
    return files > 0 ? 0 : 1;
}
