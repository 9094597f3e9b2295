// Every text and id sequence of the golden tokenizers: encode, decode and streaming against the
// answers of the Hugging Face tokenizers library (its README says which version and how).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "io/json.h"
#include "io/mapped_file.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

fs::path golden() {
    return fs::path(EXL3_GOLDEN_DIR) / "tokenizers";
}

// Names of the tokenizers there, so that further ones are tested without an edit here.
std::vector<std::string> names() {
    std::vector<std::string> found;
    if (!fs::exists(golden())) return {"none"};
    for (const auto& entry : fs::directory_iterator(golden()))
        if (entry.path().string().ends_with(".tar.xz"))
            found.push_back(entry.path().stem().stem().string());
    std::sort(found.begin(), found.end());
    return found.empty() ? std::vector<std::string>{"none"} : found;
}

std::string unpack_text(const fs::path& xz) {
    std::string out;
    FILE* pipe = popen(("xz -dc '" + xz.string() + "'").c_str(), "r");
    if (!pipe) return out;
    char block[1 << 16];
    for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;) out.append(block, n);
    pclose(pipe);
    return out;
}

class GoldenTokenizer : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (GetParam() == "none") GTEST_SKIP() << "no golden tokenizers in " << golden();
        folder_ = fs::temp_directory_path() /
                  ("exl3-golden-" + GetParam() + "-" + std::to_string(getpid()));
        fs::create_directories(folder_);
        const std::string command = "tar -C '" + folder_.string() + "' -xJf '" +
                                    (golden() / (GetParam() + ".tar.xz")).string() + "'";
        if (std::system(command.c_str()) != 0) GTEST_SKIP() << "tar cannot unpack .tar.xz here";
        for (const auto& entry : fs::recursive_directory_iterator(folder_))
            if (entry.path().filename() == "tokenizer.json") model_ = entry.path().parent_path();
    }
    void TearDown() override { fs::remove_all(folder_); }
    fs::path folder_, model_;
};

std::string stream(const Tokenizer& tokenizer, const Ids& ids, bool skip, const Json& partial) {
    StreamDecoder decoder(tokenizer, {.skip_special = skip});
    const std::string whole = tokenizer.decode(ids, {.skip_special = skip});
    std::string sent;
    for (size_t k = 0; k < ids.size(); ++k) {
        const std::string now = decoder.push(ids[k]);
        EXPECT_TRUE(text::is_valid_utf8(now));
        sent += now;
        EXPECT_TRUE(whole.starts_with(sent)) << "after token " << k;
        if (!partial.empty()) {
            EXPECT_TRUE(partial.at(k).get<std::string>().starts_with(sent)) << "after " << k;
        }
    }
    return sent + decoder.flush();
}

// The oracle's ids_plain come from a file without its special tokens. The library then numbers the
// remaining added tokens anew from the end of the vocabulary ("<think>" of Qwen3 becomes 151653);
// with its encode_special_tokens switch, which is what is meant, they keep their numbers.
Ids undo_renumbering(const Tokenizer& tokenizer, Ids ids) {
    int32_t first = tokenizer.vocab_size();
    while (first > 0 && tokenizer.is_added(first - 1)) --first;
    Ids ordinary;
    for (int32_t id = first; id < tokenizer.vocab_size(); ++id)
        if (!tokenizer.is_special(id)) ordinary.push_back(id);
    for (int32_t& id : ids)
        if (id >= first) id = ordinary.at(static_cast<size_t>(id - first));
    return ids;
}

TEST_P(GoldenTokenizer, MatchesEverywhere) {
    const Tokenizer tokenizer = Tokenizer::load(model_);
    const Json inputs =
        parse_json(read_file(golden() / "texts.json").value(), "texts.json").value();
    const std::string expected_name = GetParam() + ".expected.json";
    const Json expected =
        parse_json(unpack_text(golden() / (expected_name + ".xz")), expected_name).value();
    EXPECT_EQ(tokenizer.vocab_size(), expected.at("vocab_size_with_added").get<int>());

    ASSERT_EQ(inputs.size(), expected.at("texts").size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        const std::string text = inputs[i].at("text").get<std::string>();
        const Json& want = expected.at("texts")[i];
        SCOPED_TRACE(want.at("id").get<std::string>());
        const auto decode = [&](const Ids& ids, bool skip) {
            return tokenizer.decode(ids, {.skip_special = skip});
        };
        const Ids ids = tokenizer.encode(text, {.add_special = false});
        EXPECT_EQ(ids, want.at("ids").get<Ids>());
        EXPECT_EQ(decode(ids, false), want.at("decode").get<std::string>());
        EXPECT_EQ(decode(ids, true), want.at("decode_skip").get<std::string>());

        const Ids special = tokenizer.encode(text);
        EXPECT_EQ(special, want.at("ids_special").get<Ids>());
        EXPECT_EQ(decode(special, false), want.at("decode_special").get<std::string>());
        EXPECT_EQ(decode(special, true), want.at("decode_special_skip").get<std::string>());

        const Ids plain = tokenizer.encode(text, {.add_special = false, .parse_special = false});
        if (want.contains("ids_plain")) {
            const Ids given = want.at("ids_plain").get<Ids>();
            EXPECT_EQ(plain, undo_renumbering(tokenizer, given));
            EXPECT_EQ(decode(given, false), want.at("decode_plain").get<std::string>());
        } else {
            EXPECT_EQ(plain, ids);
        }

        EXPECT_EQ(stream(tokenizer, special, true, want.value("stream_skip", Json::array())),
                  want.at("decode_special_skip").get<std::string>());
        EXPECT_EQ(stream(tokenizer, special, false, want.value("stream_keep", Json::array())),
                  want.at("decode_special").get<std::string>());
    }
}

TEST_P(GoldenTokenizer, DecodesAnyIds) {
    const Tokenizer tokenizer = Tokenizer::load(model_);
    const std::string name = GetParam() + ".expected.json";
    const Json expected = parse_json(unpack_text(golden() / (name + ".xz")), name).value();
    for (const Json& one : expected.at("decode_cases")) {
        const Ids ids = one.at("ids").get<Ids>();
        SCOPED_TRACE(one.at("ids").dump());
        const std::string kept = one.at("decode").get<std::string>();
        const std::string skipped = one.at("decode_skip").get<std::string>();
        EXPECT_EQ(tokenizer.decode(ids, {.skip_special = false}), kept);
        EXPECT_EQ(tokenizer.decode(ids), skipped);
        EXPECT_EQ(stream(tokenizer, ids, false, Json::array()), kept);
        EXPECT_EQ(stream(tokenizer, ids, true, Json::array()), skipped);
    }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokenizer, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace exl3
