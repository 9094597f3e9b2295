#include "io/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>

#include "base/random.h"
#include "support/temp_folder.h"
#include "support/tiny_files.h"

namespace exl3 {
namespace {

using namespace std::string_literals;
using test::error_of;
using test::safetensors_bytes;
using test::TempFolder;

std::string parse_error(std::string_view bytes) {
    const auto r = parse_safetensors_header(bytes, bytes.size(), "m.safetensors");
    return r ? "" : r.error().what();
}

TEST(Safetensors, WhatIsWrittenIsRead) {
    const TempFolder folder;
    const std::vector<float> a = {1, 2, 3, 4, 5, 6};
    const int32_t marker = -877912083;
    const auto path = folder / "m.safetensors";
    write_safetensors(path,
                      {{"b", DType::f32, {2, 3}, a.data()},
                       {"empty", DType::f16, {0, 128}, nullptr},
                       {"five", DType::f32, {1, 2, 1, 3, 1}, a.data()},
                       {"a \"quoted\" é", DType::i32, {}, &marker}},
                      {{"format", "pt"}});
    const auto file = SafetensorsFile::open(path).value();
    ASSERT_EQ(file.tensors().size(), 4u);
    EXPECT_EQ(file.tensors()[0].name, "b");
    EXPECT_EQ(file.tensors()[0].offset % 64, 0u);
    EXPECT_EQ(file.view(*file.find("b")).shape, (Shape{2, 3}));
    EXPECT_EQ(std::memcmp(file.view(*file.find("b")).data, a.data(), 24), 0);
    EXPECT_EQ(file.view(*file.find("empty")).shape, (Shape{0, 128}));
    EXPECT_EQ(file.view(*file.find("five")).shape, (Shape{6})) << "more than four dimensions";
    const ConstView scalar = file.view(*file.find("a \"quoted\" é"));
    EXPECT_EQ(scalar.shape, (Shape{1}));
    EXPECT_EQ(*scalar.as<int32_t>(), marker);
    EXPECT_EQ(file.find("a"), nullptr);
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(Safetensors, EveryDtypeOfTheFormat) {
    const struct {
        const char* name;
        DType dtype;
    } all[] = {
        {"BOOL", DType::boolean},    {"U8", DType::u8},           {"I8", DType::i8},
        {"U16", DType::u16},         {"I16", DType::i16},         {"U32", DType::u32},
        {"I32", DType::i32},         {"U64", DType::u64},         {"I64", DType::i64},
        {"F8_E4M3", DType::f8_e4m3}, {"F8_E5M2", DType::f8_e5m2}, {"F8_E8M0", DType::f8_e8m0},
        {"F16", DType::f16},         {"BF16", DType::bf16},       {"F32", DType::f32},
        {"F64", DType::f64}};
    const TempFolder folder;
    const double data = 0;
    for (const auto& c : all) {
        const std::string size = std::to_string(size_of(c.dtype));
        const auto bytes =
            safetensors_bytes(R"({"x":{"dtype":")" + std::string(c.name) +
                                  R"(","shape":[1],"data_offsets":[0,)" + size + "]}}",
                              std::string(size_of(c.dtype), '\0'));
        const auto parsed = parse_safetensors_header(bytes, bytes.size(), "m");
        ASSERT_TRUE(parsed) << parsed.error().what();
        auto tensors = parsed;
        EXPECT_EQ(tensors->front().dtype, c.dtype) << c.name;
        const auto path = folder / "m.safetensors";
        write_safetensors(path, {{"x", c.dtype, {1}, &data}});
        EXPECT_EQ(SafetensorsFile::open(path).value().tensors().front().dtype, c.dtype);
    }
}

TEST(Safetensors, TheSmallestFilesAreFine) {
    EXPECT_EQ(parse_error(safetensors_bytes("{}", "")), "");
    EXPECT_EQ(parse_error(safetensors_bytes("{}      ", "")), "") << "padding";
    EXPECT_EQ(parse_error(safetensors_bytes(R"({"__metadata__":{}})", "")), "");
    EXPECT_EQ(parse_error(safetensors_bytes(
                  R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", "")),
              "");
}

TEST(Safetensors, TensorsComeInTheOrderOfTheirBytes) {
    const auto bytes = safetensors_bytes(R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]},)"
                                         R"("e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
                                         R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
                                         "1234");
    auto tensors = parse_safetensors_header(bytes, bytes.size(), "m").value();
    ASSERT_EQ(tensors.size(), 3u);
    EXPECT_EQ(tensors[0].name + tensors[1].name + tensors[2].name, "aeb");
    EXPECT_EQ(tensors[2].offset, bytes.size() - 3);
}

struct Malformed {
    const char* entry;  ///< of tensor "t" in a file with 8 bytes of data
    const char* says;
};

TEST(Safetensors, ABadEntryIsNamedWithItsTensorAndByte) {
    const Malformed cases[] = {
        {R"(5)", "found number, needed an object with dtype"},
        {R"([])", "found array, needed an object"},
        {R"({})", "found no key 'dtype'"},
        {R"({"shape":[2],"data_offsets":[0,8]})", "found no key 'dtype'"},
        {R"({"dtype":"F32","data_offsets":[0,8]})", "found no key 'shape'"},
        {R"({"dtype":"F32","shape":[2]})", "found no key 'data_offsets'"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})", "found key 'x', needed"},
        {R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})", "'dtype': found number"},
        {R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})",
         "'dtype': found 'F31', needed one of F64, F32"},
        {R"({"dtype":"f32","shape":[2],"data_offsets":[0,8]})", "'dtype': found 'f32'"},
        {R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})", "'shape': found number"},
        {R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "'shape': found -2"},
        {R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", "'shape': found 2.0"},
        {R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})", "'shape': found string"},
        {R"({"dtype":"F32","shape":[[2]],"data_offsets":[0,8]})", "'shape': found array"},
        {R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]})",
         "'shape': found 1e+20"},
        {R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})", "overflows"},
        {R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})", "overflows"},
        {R"({"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})", "overflows"},
        {R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", "overflows"},
        {R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
         "f32 (3) needs 12 bytes, data_offsets [0, 8] give 8"},
        {R"({"dtype":"F32","shape":[],"data_offsets":[0,8]})", "f32 () needs 4 bytes"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "[8, 0], needed begin <= end"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":[0]})", "'data_offsets': needed a list"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})", "'data_offsets': needed a list"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":{"0":0}})", "'data_offsets': needed a list"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})", "'data_offsets': needed a list"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.0]})", "'data_offsets': needed a list"},
        {R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,18446744073709551615]})",
         "file holds 8 bytes of data"},
    };
    for (const auto& c : cases) {
        const std::string error =
            parse_error(safetensors_bytes(R"({"t":)" + std::string(c.entry) + "}", "12345678"));
        EXPECT_TRUE(error.starts_with("m.safetensors: tensor 't': at byte 9: ")) << error;
        EXPECT_NE(error.find(c.says), std::string::npos) << c.entry << " gives " << error;
    }
}

TEST(Safetensors, BadRangesAreNamedWithTheByteOfTheData) {
    const auto entry = [](const char* name, int begin, int end) {
        return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name,
                           end - begin, begin, end);
    };
    const auto error = [](const std::string& entries, size_t data) {
        return parse_error(safetensors_bytes("{" + entries + "}", std::string(data, 'x')));
    };
    const auto at = [](const std::string& entries, size_t byte) {
        return "at byte " + std::to_string(8 + 2 + entries.size() + byte) + ": ";
    };
    const std::string one = entry("a", 0, 8);
    EXPECT_EQ(error(one, 8), "");
    EXPECT_EQ(error(one, 5),
              "m.safetensors: tensor 'a': " + at(one, 0) + "needs 8 bytes, file ends after 5");
    EXPECT_EQ(error(one, 9), "m.safetensors: " + at(one, 8) +
                                 "found 1 bytes after the last tensor, needed the end of the file");
    const std::string far = entry("a", 4, 12);
    EXPECT_EQ(error(far, 2),
              "m.safetensors: tensor 'a': " + at(far, 4) + "needs 8 bytes, file ends after 0");
    const std::string overlap = entry("a", 0, 6) + "," + entry("b", 5, 8);
    EXPECT_EQ(error(overlap, 8), "m.safetensors: tensor 'b': " + at(overlap, 5) +
                                     "overlaps tensor 'a', which ends " +
                                     at(overlap, 6).substr(0, at(overlap, 6).size() - 2));
    const std::string same = entry("a", 0, 8) + "," + entry("b", 0, 8);
    EXPECT_NE(error(same, 8).find("tensor 'b': " + at(same, 0) + "overlaps"), std::string::npos);
    const std::string hole = entry("a", 0, 3) + "," + entry("b", 5, 8);
    EXPECT_EQ(error(hole, 8), "m.safetensors: tensor 'b': " + at(hole, 3) +
                                  "found 2 bytes of no tensor before it, needed its data");
    const std::string late = entry("a", 1, 8);
    EXPECT_NE(error(late, 8).find("found 1 bytes of no tensor"), std::string::npos);
}

TEST(Safetensors, BadHeadersAreNamedWithTheByte) {
    const auto length = [](uint64_t n, std::string_view rest) {
        std::string s(8, '\0');
        std::memcpy(s.data(), &n, 8);
        return s.append(rest);
    };
    const struct {
        std::string bytes;
        const char* says;
    } cases[] = {
        {"", "at byte 0: needs 8 bytes of header length, file ends after 0"},
        {"1234567", "at byte 0: needs 8 bytes of header length, file ends after 7"},
        {length(0, ""), "at byte 8: header: needed '{'"},
        {length(2, ""), "at byte 8: header needs 2 bytes, file ends after 0"},
        {length(3, "{}"), "at byte 8: header needs 3 bytes, file ends after 2"},
        {length((100 << 20) + 1, "{}"), "at byte 0: found a header length of 104857601 bytes"},
        {length(UINT64_MAX, "{}"), "at byte 0: found a header length of 18446744073709551615"},
        {length(2, "[]"), "at byte 8: header: needed '{'"},
        {length(3, " {}"), "at byte 8: header: needed '{'"},
        {length(5, "\xef\xbb\xbf{}"), "at byte 8: header: needed '{'"},
        {length(2, "{x"), "at byte 9: found malformed JSON"},
        {length(2, "{}{"), "at byte 10: found 1 bytes after the last tensor"},
        {length(4, "{}\0\0"s), "at byte 10: found malformed JSON"},
        {safetensors_bytes(R"({"a":1,"a":2})", ""), "at byte 15: found key 'a' twice"},
        {safetensors_bytes(R"({"a":{"dtype":"U8","dtype":"I8"}})", ""), "found key 'dtype' twice"},
        {safetensors_bytes("{\"\xff\":1}", ""), "found malformed JSON"},
        {safetensors_bytes(R"({"__metadata__":[]})", ""),
         "at byte 9: '__metadata__': found array, needed an object of strings"},
        {safetensors_bytes(R"({"__metadata__":{"format":1}})", ""),
         "at byte 9: '__metadata__': key 'format': found number, needed a string"},
    };
    for (const auto& c : cases) {
        const std::string error = parse_error(c.bytes);
        EXPECT_TRUE(error.starts_with("m.safetensors: ")) << error;
        EXPECT_NE(error.find(c.says), std::string::npos) << c.says << "\nbut got " << error;
    }
}

TEST(Safetensors, AnErrorStaysOnOneShortLineWhateverTheNameIs) {
    const std::string error = parse_error(
        safetensors_bytes("{\"line\\nbreak\\u001b[31m" + std::string(100'000, 'x') + "\":1}", ""));
    EXPECT_NE(error.find("line\\x0abreak\\x1b"), std::string::npos);
    EXPECT_LT(error.size(), 1000u);
}

std::string small_file() {
    return safetensors_bytes(
        R"({"__metadata__":{"format":"pt"},)"
        R"("q.trellis":{"dtype":"I16","shape":[1,1,16],"data_offsets":[0,32]},)"
        R"("q.suh":{"dtype":"F16","shape":[16],"data_offsets":[32,64]},)"
        R"("q.mcg":{"dtype":"I32","shape":[],"data_offsets":[64,68]},)"
        R"("none":{"dtype":"BF16","shape":[0,7],"data_offsets":[68,68]}}  )",
        std::string(68, 'd'));
}

/// A header that is accepted lists tensors that lie inside the file and are of their size.
void expect_error_or_sound(const std::string& bytes, const std::string& what) {
    // A copy of exactly this size, so that the sanitizer sees a read past it.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    auto r = parse_safetensors_header({exact.data(), exact.size()}, exact.size(), "m.safetensors");
    if (!r) {
        EXPECT_TRUE(std::string_view(r.error().what()).starts_with("m.safetensors: ")) << what;
        EXPECT_TRUE(r.error().where().offset) << what << ": " << r.error().what();
        return;
    }
    for (const TensorInfo& t : *r) {
        ASSERT_LE(t.offset + t.bytes, bytes.size()) << what;
        ASSERT_EQ(t.bytes, static_cast<uint64_t>(t.numel()) * size_of(t.dtype)) << what;
    }
}

TEST(Safetensors, AFlippedBitGivesAnErrorOrASoundFile) {
    const std::string good = small_file();
    ASSERT_EQ(parse_error(good), "");
    for (size_t i = 0; i < good.size() - 68; ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string bad = good;
            bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
            expect_error_or_sound(bad, fmt::format("bit {} of byte {}", bit, i));
        }
}

TEST(Safetensors, RandomDamageGivesAnErrorOrASoundFile) {
    const std::string good = small_file();
    Random random(11);
    for (int trial = 0; trial < 20'000; ++trial) {
        std::string bad = good;
        for (uint64_t n = 1 + random.next() % 4; n > 0; --n) {
            const size_t at = random.next() % (bad.size() - 68);
            switch (random.next() % 3) {
                case 0: bad[at] = static_cast<char>(random.next()); break;
                case 1: bad.erase(at, 1 + random.next() % 3); break;
                default: bad.insert(at, 1, "{}[]\":,0919-eE\\u"[random.next() % 16]);
            }
            const uint64_t length = random.next() % 2 ? bad.size() - 76 : good.size() - 76;
            std::memcpy(bad.data(), &length, 8);
        }
        expect_error_or_sound(bad, fmt::format("trial {}", trial));
    }
}

TEST(Safetensors, ATruncatedFileIsRefusedAtEveryLength) {
    const TempFolder folder;
    const std::string good = small_file();
    for (size_t n = 0; n < good.size(); ++n) {
        const auto path = folder.write("m.safetensors", good.substr(0, n));
        const auto r = SafetensorsFile::open(path);
        ASSERT_FALSE(r) << "cut to " << n << " bytes";
        ASSERT_TRUE(std::string_view(r.error().what()).starts_with(path.string() + ": ")) << n;
        ASSERT_TRUE(r.error().where().offset) << n;
    }
    EXPECT_TRUE(SafetensorsFile::open(folder.write("m.safetensors", good)));
}

TEST(Safetensors, FilesThatCannotBeMappedAreNamed) {
    const TempFolder folder;
    const auto error = [](const std::filesystem::path& path) {
        const auto r = SafetensorsFile::open(path);
        return r ? std::string() : std::string(r.error().what());
    };
    EXPECT_EQ(error(folder / "no"),
              (folder / "no").string() + ": cannot open: No such file or directory");
    EXPECT_EQ(error(folder.path()),
              folder.path().string() + ": found a folder, needed a regular file");
    const auto pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(error(pipe), pipe.string() + ": found a special file, needed a regular file");
}

TEST(Safetensors, WritingReplacesAFileWholeOrNotAtAll) {
    const TempFolder folder;
    const auto path = folder.write("m.safetensors", "old");
    const std::vector<char> data(1 << 20);
    const std::vector<TensorToWrite> tensors = {{"a", DType::u8, {1 << 20}, data.data()}};

    // The limit on the size of a file stands in for a full disk: the write fails half-way.
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{100'000, before.rlim_max};
    auto* handler = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string error = error_of([&] { write_safetensors(path, tensors); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);

    EXPECT_EQ(error, path.string() + ": cannot write (100000 bytes written): File too large");
    EXPECT_EQ(test::read_all(path), "old");
    EXPECT_EQ(folder.entries(), 1u) << "a temporary file is left";
    write_safetensors(path, tensors);
    EXPECT_EQ(SafetensorsFile::open(path).value().tensors().size(), 1u);
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(Safetensors, WritingToAnImpossiblePlaceIsAnError) {
    const TempFolder folder;
    EXPECT_NE(error_of([&] {
                  write_safetensors(folder / "no/m.safetensors", {});
              }).find("no/m.safetensors: cannot create the file"),
              std::string::npos);
    std::filesystem::create_directory(folder / "d");
    EXPECT_NE(error_of([&] { write_safetensors(folder / "d", {}); }).find("cannot rename"),
              std::string::npos);
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(Safetensors, WhatCannotBeReadBackIsNotWritten) {
    const TempFolder folder;
    const float x = 0;
    const auto error = [&](std::vector<TensorToWrite> tensors) {
        return error_of([&] { write_safetensors(folder / "m", tensors); });
    };
    EXPECT_NE(error({{"a", DType::f32, {}, &x}, {"a", DType::f32, {}, &x}})
                  .find("tensor 'a': found this name twice"),
              std::string::npos);
    EXPECT_NE(error({{"__metadata__", DType::f32, {}, &x}}).find("the format keeps for itself"),
              std::string::npos);
    EXPECT_NE(error({{"\xff", DType::f32, {}, &x}}).find("not UTF-8"), std::string::npos);
    EXPECT_NE(error({{"a", DType::f32, {-1}, &x}}).find("shape (-1)"), std::string::npos);
    EXPECT_NE(error({{"a", DType::f32, {1LL << 40, 1LL << 40}, &x}}).find("shape ("),
              std::string::npos);
    EXPECT_EQ(folder.entries(), 0u);
}

TEST(Safetensors, ASymlinkIsReplacedAndItsTargetKept) {
    // A model folder of the Hugging Face cache is symlinks into a store of blobs.
    const TempFolder folder;
    const auto blob = folder.write("blob", "precious");
    std::filesystem::create_symlink(blob, folder / "m.safetensors");
    write_safetensors(folder / "m.safetensors", {});
    EXPECT_EQ(test::read_all(blob), "precious");
    EXPECT_TRUE(SafetensorsFile::open(folder / "m.safetensors"));
}

TEST(Safetensors, BytesOutliveTheFileObjectThroughTheMapping) {
    const TempFolder folder;
    std::shared_ptr<const MappedFile> mapping;
    ConstView view;
    const int32_t x = 42;
    write_safetensors(folder / "m", {{"x", DType::i32, {}, &x}});
    {
        const auto file = SafetensorsFile::open(folder / "m").value();
        mapping = file.mapping();
        view = file.view(file.tensors().front());
    }
    std::filesystem::remove(folder / "m");
    EXPECT_EQ(*view.as<int32_t>(), 42);
}

}  // namespace
}  // namespace exl3
