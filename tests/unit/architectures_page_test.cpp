// docs/design/architectures.md lists what the build knows, and what it says of golden logits holds.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "arch/arch.h"
#include "support/golden.h"

namespace exl3::test {
namespace {

// Class name to what stands under "golden".
std::map<std::string, std::string> listed() {
    std::istringstream page(read_file(source_dir() / "docs/design/architectures.md").value());
    std::map<std::string, std::string> rows;
    for (std::string line; std::getline(page, line);) {
        std::vector<std::string> cells;
        std::istringstream text(line);
        for (std::string cell; std::getline(text, cell, '|');) {
            const size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
            cells.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
        }
        if (cells.size() != 4 || !cells[0].empty()) continue;
        if (cells[1].ends_with("ForCausalLM") || cells[1].ends_with("ForConditionalGeneration"))
            rows[cells[1]] = cells[3];
    }
    return rows;
}

TEST(ArchitecturesPage, ListsWhatIsKnown) {
    const auto rows = listed();
    for (const std::string& name : known_architectures())
        EXPECT_TRUE(rows.contains(name)) << name << " has no row";
    const auto known = known_architectures();
    for (const auto& [name, golden] : rows)
        EXPECT_NE(std::find(known.begin(), known.end(), name), known.end())
            << name << " is listed but not known";
}

TEST(ArchitecturesPage, EveryRowHasGoldenLogitsOrSaysWhyNot) {
    for (const auto& [name, golden] : listed()) {
        const bool have =
            std::filesystem::exists(source_dir() / "tests/golden/data/tiny" / (name + ".json"));
        if (golden == "yes")
            EXPECT_TRUE(have) << name;
        else
            EXPECT_TRUE(golden.starts_with("no: ") && !have) << name << ": '" << golden << "'";
    }
}

}  // namespace
}  // namespace exl3::test
