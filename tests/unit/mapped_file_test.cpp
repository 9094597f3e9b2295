#include "io/mapped_file.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"
#include "support/tiny_files.h"

namespace exl3 {
namespace {

using test::error_of;
using test::TempFolder;

TEST(MappedFile, ShowsTheBytesOfTheFile) {
    const TempFolder folder;
    const std::string text("a\0b", 3);
    EXPECT_EQ(MappedFile::open(folder.write("f", text)).value()->text(), text);
    const auto empty = MappedFile::open(folder.write("empty", "")).value();
    EXPECT_EQ(empty->size(), 0u);
    EXPECT_EQ(empty->text(), "");
}

TEST(ReadFile, RefusesWhatIsTooLargeOrNoFile) {
    const TempFolder folder;
    const auto path = folder.write("f", "12345");
    EXPECT_EQ(read_file(path, 5).value(), "12345");
    EXPECT_EQ(read_file(path, 4).error().what(),
              path.string() + ": found 5 bytes, needed at most 4");
    EXPECT_EQ(read_file(folder.path()).error().what(),
              folder.path().string() + ": found a folder, needed a regular file");
    EXPECT_EQ(read_file(folder / "no").error().code(), Errc::io);
}

TEST(WriteFile, ReplacesWholeFilesAndLeavesNothingElse) {
    const TempFolder folder;
    const auto path = folder / "f";
    write_file(path, "first");
    write_file(path, "second");
    EXPECT_EQ(test::read_all(path), "second");
    EXPECT_EQ(folder.entries(), 1u);
    EXPECT_NE(error_of([&] { write_file(folder / "no" / "f", ""); }), "");
    const std::string long_name(255, 'n');  // the longest that file systems take
    write_file(folder / long_name, "x");
    EXPECT_EQ(test::read_all(folder / long_name), "x");
}

}  // namespace
}  // namespace exl3
