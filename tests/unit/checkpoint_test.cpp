#include "io/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"
#include "support/tiny_files.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TempFolder;

/// A model folder in the making; every tensor holds one i32.
struct Model : TempFolder {
    Model() { write("config.json", R"({"architectures":["X"]})"); }
    void weights(std::string_view file, const std::vector<std::string>& names,
                 int32_t value = 0) const {
        std::vector<TensorToWrite> tensors;
        for (const auto& name : names) tensors.push_back({name, DType::i32, {}, &value});
        write_safetensors(path() / file, tensors);
    }
    void index(std::string_view weight_map) const {
        write("model.safetensors.index.json",
              fmt::format(R"({{"metadata":{{"total_size":8}},"weight_map":{}}})", weight_map));
    }
    Checkpoint open() const { return Checkpoint::open(path()); }
    std::string error() const {
        return error_of([&] { open(); });
    }
    std::string at(std::string_view file) const { return (path() / file).string() + ": "; }
};

int32_t value(const Checkpoint& c, std::string_view name) {
    return *c.view(name).as<int32_t>();
}

TEST(Checkpoint, OpensTheModelOfTheRepository) {
    const auto c = Checkpoint::open(EXL3_SOURCE_DIR "/models/tales-9m");
    EXPECT_TRUE(c.has("model.embed_tokens.weight"));
    EXPECT_GT(c.total_bytes(), 1'000'000u);
    EXPECT_FALSE(c.config().architecture().empty());
    EXPECT_TRUE(c.generation_config());
}

TEST(Checkpoint, FindsTensorsOfAllShards) {
    const Model m;
    m.weights("model-00001-of-00002.safetensors", {"b", "c"}, 1);
    m.weights("model-00002-of-00002.safetensors", {"a"}, 2);
    m.index(R"({"b":"model-00001-of-00002.safetensors","a":"model-00002-of-00002.safetensors"})");
    const auto c = m.open();
    EXPECT_EQ(c.tensors().size(), 3u);
    EXPECT_EQ(c.tensors().begin()->first, "a");
    EXPECT_EQ(value(c, "a"), 2);
    EXPECT_EQ(value(c, "c"), 1) << "a tensor that the index leaves out";
    EXPECT_EQ(c.total_bytes(), 12u);
    EXPECT_FALSE(c.generation_config());
    EXPECT_EQ(c.where("a").file,
              m.at("model-00002-of-00002.safetensors").substr(0, c.where("a").file.size()));
    EXPECT_EQ(c.where("a").offset, c.find("a").info->offset);
}

TEST(Checkpoint, ViewOfAMissingTensorIsAnErrorWithItsName) {
    const Model m;
    m.weights("model.safetensors", {"a"});
    const auto c = m.open();
    EXPECT_FALSE(c.has("x"));
    EXPECT_EQ(error_of([&] { c.view("x"); }),
              m.path().string() + ": tensor 'x': found no such tensor, needed it");
}

TEST(Checkpoint, StaysValidWhenMoved) {
    const Model m;
    m.weights("model.safetensors", {"a"}, 7);
    Checkpoint first = m.open();
    const Checkpoint second = std::move(first);
    EXPECT_EQ(value(second, "a"), 7);
}

TEST(Checkpoint, LaterFilesOverrideEarlierOnesUnlessTheIndexNamesAnOwner) {
    const Model m;
    m.weights("model.safetensors", {"a", "b"}, 1);
    m.weights("mtp.safetensors", {"b", "mtp.c"}, 2);
    auto c = m.open();
    EXPECT_EQ(value(c, "a"), 1);
    EXPECT_EQ(value(c, "b"), 2);
    EXPECT_EQ(value(c, "mtp.c"), 2);
    m.index(R"({"b":"model.safetensors"})");
    EXPECT_EQ(value(m.open(), "b"), 1);
    m.index(R"({"mtp.c":"model.safetensors"})");  // the index is wrong, but the tensor is there
    EXPECT_EQ(value(m.open(), "mtp.c"), 2);
}

TEST(Checkpoint, WhatIsMissingIsNamed) {
    const TempFolder folder;
    EXPECT_EQ(error_of([&] { Checkpoint::open(folder / "no"); }),
              (folder / "no").string() + ": cannot open the folder: No such file or directory");
    EXPECT_EQ(error_of([&] { Checkpoint::open(folder.write("file", "")); }),
              (folder / "file").string() + ": found a file, needed the folder of a checkpoint");
    EXPECT_EQ(error_of([&] { Checkpoint::open(folder.path()); }),
              (folder / "config.json").string() + ": cannot open: No such file or directory");

    const Model m;
    EXPECT_EQ(m.error(), m.path().string() + ": found no *.safetensors file, needed the weights");
    m.weights("model-00001-of-00002.safetensors", {"a"});
    EXPECT_EQ(m.error(),
              m.path().string() + ": found 1 files model-*-of-00002.safetensors, needed 2");
    m.index(R"({"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"})");
    EXPECT_EQ(m.error(), m.at("model.safetensors.index.json") +
                             "tensor 'b': needs the file 'model-00002-of-00002.safetensors', "
                             "which the folder lacks");
    m.weights("model-00002-of-00002.safetensors", {"c"});
    EXPECT_EQ(m.error(), m.at("model-00002-of-00002.safetensors") +
                             "tensor 'b': found no such tensor, needed it: "
                             "model.safetensors.index.json names it");
}

TEST(Checkpoint, ABrokenFileIsNamed) {
    const Model m;
    m.weights("a.safetensors", {"a"});
    m.write("generation_config.json", "{\"a\":}");
    EXPECT_TRUE(m.error().starts_with(m.at("generation_config.json") + "at byte 5: ")) << m.error();
    m.write("generation_config.json", "{}");
    m.write("b.safetensors", test::safetensors_bytes(R"({"t":7})", ""));
    EXPECT_EQ(m.error(), m.at("b.safetensors") +
                             "tensor 't': at byte 9: found number, needed an object with dtype, "
                             "shape and data_offsets");
    m.write("b.safetensors", "");
    EXPECT_EQ(m.error(), m.at("b.safetensors") +
                             "at byte 0: needs 8 bytes of header length, file ends after 0");
    fs::remove(m / "b.safetensors");
    fs::create_directory(m / "b.safetensors");
    EXPECT_EQ(m.error(), m.at("b.safetensors") + "found a folder, needed a regular file");
    fs::remove(m / "b.safetensors");
    m.write("config.json", "[]");
    EXPECT_EQ(m.error(), m.at("config.json") + "found a list of 0, needed an object");
}

TEST(Checkpoint, TheIndexMayNameFilesOfTheFolderAlone) {
    const Model m;
    m.weights("model.safetensors", {"a"});
    for (const char* name : {"../model.safetensors", "/etc/passwd", "sub/model.safetensors", "..",
                             ".", "", ".hidden.safetensors", ".safetensors", "a\\\\b.safetensors",
                             "model.bin", "model\\u0000.safetensors", "model.safetensors/"}) {
        m.index(fmt::format(R"({{"a":"{}"}})", name));
        EXPECT_TRUE(m.error().starts_with(m.at("model.safetensors.index.json") +
                                          "tensor 'a': key 'weight_map': found '"))
            << name << " gives " << m.error();
    }
}

TEST(Checkpoint, ABrokenIndexIsNamed) {
    const auto error = [](std::string_view text) {
        const auto r = parse_checkpoint_index(text, "i.json");
        return r ? std::string() : std::string(r.error().what());
    };
    EXPECT_TRUE(error("{\"weight_map\":{}").starts_with("i.json: at byte 16: found malformed"));
    EXPECT_EQ(error("[]"), "i.json: found array, needed an object");
    EXPECT_EQ(error("{}"), "i.json: found no key 'weight_map', needed one");
    EXPECT_EQ(error(R"({"weight_map":[]})"),
              "i.json: key 'weight_map': found array, needed an object of strings");
    EXPECT_EQ(error(R"({"weight_map":{"a":1}})"),
              "i.json: tensor 'a': key 'weight_map': found number, needed a file name");
    EXPECT_TRUE(error(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})")
                    .starts_with("i.json: at byte 35: found key 'a' twice"));
    EXPECT_EQ(error(R"({"weight_map":{}})"), "");
}

TEST(Checkpoint, FoldersOfSymlinksWork) {
    // How the Hugging Face cache looks: names point into a store of blobs.
    const TempFolder blobs;
    const Model made;
    made.weights("model.safetensors", {"a"}, 5);
    fs::rename(made / "model.safetensors", blobs / "4fe1");
    fs::rename(made / "config.json", blobs / "77aa");
    fs::create_symlink(blobs / "4fe1", made / "model.safetensors");
    fs::create_symlink(blobs / "77aa", made / "config.json");
    EXPECT_EQ(value(made.open(), "a"), 5);
    fs::remove(blobs / "4fe1");
    EXPECT_EQ(made.error(),
              made.at("model.safetensors") + "cannot open: No such file or directory");
}

TEST(Checkpoint, OtherFilesDoNotDisturb) {
    const Model m;
    m.weights("model.safetensors", {"a"});
    m.write("._model.safetensors", "left by a copying tool");
    m.write(".model.safetensors.12.0.tmp", "left by a killed process");
    m.write("model.safetensors.tmp", "x");
    m.write("tokenizer.json", "not looked at");
    fs::create_directory(m / "sub");
    EXPECT_EQ(m.error(), "");
}

TEST(Checkpoint, HundredsOfShards) {
    const Model m;
    std::string map = "{";
    for (int i = 1; i <= 400; ++i) {
        const auto file = fmt::format("model-{:05}-of-000400.safetensors", i);
        m.weights(file, {fmt::format("t{}", i)}, i);
        map += fmt::format("{}\"t{}\":\"{}\"", i > 1 ? "," : "", i, file);
    }
    EXPECT_EQ(value(m.open(), "t399"), 399);
    m.index(map + "}");
    const auto c = m.open();
    EXPECT_EQ(c.tensors().size(), 400u);
    EXPECT_EQ(value(c, "t400"), 400);
}

TEST(Checkpoint, ShardNamesWithoutAnIndexMustBeComplete) {
    const Model m;
    for (const char* name : {"model-00001-of-00003", "model-00002-of-00003", "mtp-1-of-1", "a-of-b",
                             "x-of-99", "-of-", "99999999999999999999-of-3", "y-1-of-2x"})
        m.weights(std::string(name) + ".safetensors", {name});
    EXPECT_EQ(m.error(),
              m.path().string() + ": found 2 files model-*-of-00003.safetensors, needed 3");
    m.weights("model-00003-of-00003.safetensors", {"last"});
    EXPECT_EQ(m.error(), "");
}

}  // namespace
}  // namespace exl3
