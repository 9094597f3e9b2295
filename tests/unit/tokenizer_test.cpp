#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "support/golden.h"
#include "text/unicode.h"

namespace exl3 {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer tales() {
    return Tokenizer::load(test::source_dir() / "models/tales-9m");
}

std::string with_quotes(std::string json) {  // 'x' to "x", to keep the files below readable
    std::replace(json.begin(), json.end(), '\'', '"');
    return json;
}

// SentencePiece style: spaces become U+2581, unknown characters become bytes, BOS before the text.
const std::string kSpaced = with_quotes(R"({
  'added_tokens': [
    {'id': 0, 'content': '<s>', 'special': true, 'normalized': false},
    {'id': 1, 'content': '</s>', 'special': true, 'normalized': false}],
  'normalizer': {'type': 'Sequence', 'normalizers': [
    {'type': 'Prepend', 'prepend': '▁'},
    {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}]},
  'post_processor': {'type': 'TemplateProcessing',
    'single': [{'SpecialToken': {'id': '<s>', 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}],
    'special_tokens': {'<s>': {'id': '<s>', 'ids': [0], 'tokens': ['<s>']}}},
  'decoder': {'type': 'Sequence', 'decoders': [
    {'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '},
    {'type': 'ByteFallback'}, {'type': 'Fuse'},
    {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}]},
  'model': {'type': 'BPE', 'byte_fallback': true,
    'vocab': {'<s>': 0, '</s>': 1, '▁': 2, 'a': 3, 'b': 4, '▁a': 5, '▁ab': 6,
              '<0xC3>': 7, '<0xA9>': 8, '<0xF0>': 9, '<0x9F>': 10, '<0x98>': 11, '<0x80>': 12},
    'merges': ['▁ a', '▁a b']}})");

Tokenizer spaced(std::string_view config = "") {
    return Tokenizer::from_json(kSpaced, config);
}

std::string words(std::string_view model_extra = "", std::string_view extra = "") {
    return with_quotes(
        "{'model': {'type': 'WordLevel', 'vocab': {'a': 0, 'b': 1, 'u': 2}, "
        "'unk_token': 'u'" +
        std::string(model_extra) + "}" + std::string(extra) + "}");
}

std::string error_of(const std::string& json, const std::string& config = "") {
    try {
        Tokenizer::from_json(json, config);
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

// ---- The demo model

TEST(Tokenizer, DemoModelRoundTrips) {
    const Tokenizer t = tales();
    EXPECT_EQ(t.vocab_size(), 4096);
    EXPECT_EQ(t.eos_id(), 0);
    EXPECT_FALSE(t.adds_bos());
    EXPECT_TRUE(t.is_special(0));
    const std::string text =
        "Once upon a time, 12 foxes\n\tran <|endoftext|> \xC3\xA9\xE2\x82\xAC!";
    const Ids ids = t.encode(text);
    EXPECT_EQ(t.decode(ids, {.skip_special = false}), text);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 1);
    const Ids plain = t.encode(text, {.parse_special = false});
    EXPECT_EQ(std::count(plain.begin(), plain.end(), 0), 0);
    EXPECT_EQ(t.decode(plain), text);
}

TEST(Tokenizer, PiecesAreTheBytesOfTokens) {
    const Tokenizer t = tales();
    const std::string text = " Two  words\n\xF0\x9F\x98\x80";
    std::string joined;
    for (const int32_t id : t.encode(text)) joined += t.bytes_of(id);
    EXPECT_EQ(joined, text);
    EXPECT_EQ(t.token_of(*t.id_of("\xC4\xA0the")), "\xC4\xA0the");
    EXPECT_EQ(t.bytes_of(*t.id_of("\xC4\xA0the")), " the");
    EXPECT_EQ(t.bytes_of(-1), "");
    EXPECT_EQ(t.bytes_of(4096), "");
    EXPECT_EQ(t.id_of("no such token"), std::nullopt);
}

TEST(Tokenizer, InvalidUtf8CountsAsReplacementCharacters) {
    const Tokenizer t = tales();
    const std::string bad = "a\xFF\xF0\x9Fz\xC3";  // three maximal invalid parts
    EXPECT_EQ(t.encode(bad), t.encode("a\xEF\xBF\xBD\xEF\xBF\xBDz\xEF\xBF\xBD"));
}

TEST(Tokenizer, IsTheSameFromManyThreads) {
    const Tokenizer t = tales();
    const std::string text = read_file(test::source_dir() / "models/tales-9m/valid.txt").value();
    const Ids expected = tales().encode(text);
    std::vector<Ids> found(4);
    std::vector<std::thread> threads;
    for (Ids& ids : found) threads.emplace_back([&] { ids = t.encode(text); });
    for (std::thread& thread : threads) thread.join();
    for (const Ids& ids : found) EXPECT_TRUE(ids == expected);
}

// Heap and list merges must give what the definition gives: lowest rank first, leftmost of equals.
TEST(Tokenizer, LongWordsMergeLikeShortOnes) {
    const std::string json = with_quotes(
        "{'model': {'type': 'BPE', 'vocab': {'a': 0, 'b': 1, 'aa': 2, 'ab': 3, 'aab': 4, 'ba': 5}, "
        "'merges': ['a b', 'a a', 'aa b', 'b a']}}");
    const Tokenizer t = Tokenizer::from_json(json);
    std::mt19937 random(1);
    for (int n = 1; n < 200; n += 7) {
        std::string text;
        for (int i = 0; i < n; ++i) text += random() % 3 ? 'a' : 'b';
        std::vector<std::string> parts;
        for (const char c : text) parts.emplace_back(1, c);
        for (const auto& [l, r] : {std::pair{"a", "b"}, {"a", "a"}, {"aa", "b"}, {"b", "a"}}) {
            // No merge makes a pair of lower rank possible here, so one pass a rank will do.
            for (size_t i = 0; i + 1 < parts.size(); ++i)
                if (parts[i] == l && parts[i + 1] == r) {
                    parts[i] += r;
                    parts.erase(parts.begin() + static_cast<ptrdiff_t>(i) + 1);
                }
        }
        std::vector<std::string> found;
        for (const int32_t id : t.encode(text)) found.push_back(t.token_of(id));
        EXPECT_EQ(found, parts) << text;
    }
}

TEST(Tokenizer, HugeWordsStayQuick) {
    const Tokenizer t = tales();
    for (const char* unit : {"a", " ", "\n", "7", "\xCC\x81", "ab", "<|endoftext|>"}) {
        std::string text;
        while (text.size() < 300'000) text += unit;
        EXPECT_EQ(t.decode(t.encode(text), {.skip_special = false}), text);
    }
}

// ---- Special tokens and the beginning of a text

TEST(Tokenizer, PromptsBeginWithOneBos) {
    const Tokenizer t = spaced(R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
    EXPECT_TRUE(t.adds_bos());
    EXPECT_EQ(t.bos_id(), 0);
    EXPECT_EQ(t.eos_id(), 1);
    EXPECT_EQ(t.pad_id(), std::nullopt);
    EXPECT_EQ(t.encode("ab"), (Ids{0, 6}));
    EXPECT_EQ(t.encode("ab", {.add_special = false}), (Ids{6}));
    EXPECT_EQ(t.encode("<s>ab"), (Ids{0, 0, 6})) << "encode does as the post-processor says";
    EXPECT_EQ(t.encode_prompt("<s>ab"), (Ids{0, 6}));
    EXPECT_EQ(t.encode_prompt("ab"), (Ids{0, 6}));
    EXPECT_EQ(t.encode_prompt(""), (Ids{0}));
}

TEST(Tokenizer, ConfigCanAskForBosWhereNoTemplateDoes) {
    const std::string json = words("", ", 'pre_tokenizer': {'type': 'WhitespaceSplit'}");
    const Tokenizer t = Tokenizer::from_json(json, R"({"bos_token": "b", "add_bos_token": true})");
    EXPECT_TRUE(t.adds_bos());
    EXPECT_EQ(t.encode("a"), (Ids{0}));
    EXPECT_EQ(t.encode_prompt("a a"), (Ids{1, 0, 0}));
    EXPECT_EQ(t.encode_prompt("b a"), (Ids{1, 0}));
}

TEST(Tokenizer, ConfigNamesTokensAndTemplates) {
    const Tokenizer t = spaced(R"({"bos_token": "<s>", "unk_token": null, "chat_template": [
        {"name": "default", "template": "{{ a }}"}, {"name": "tool_use", "template": "{{ b }}"}],
        "extra_special_tokens": {"image_token": "<img>"},
        "added_tokens_decoder": {
            "0": {"content": "<s>", "special": false},
            "13": {"content": "<img>", "special": true, "normalized": false}}})");
    EXPECT_EQ(t.named_tokens(),
              (std::map<std::string, std::string>{{"bos_token", "<s>"}, {"image_token", "<img>"}}));
    ASSERT_EQ(t.chat_templates().size(), 2u);
    EXPECT_EQ(t.chat_templates()[1].name, "tool_use");
    EXPECT_EQ(t.chat_templates()[1].source, "{{ b }}");
    EXPECT_TRUE(t.is_special(0)) << "tokenizer.json has it, the config does not change it";
    EXPECT_EQ(t.id_of("<img>"), 13);
    EXPECT_EQ(t.vocab_size(), 14);
    EXPECT_EQ(t.encode("<img>ab", {.add_special = false}), (Ids{13, 6}));
    const Tokenizer one = spaced(R"({"chat_template": "{{ c }}"})");
    EXPECT_EQ(one.chat_templates().at(0).name, "default");
}

TEST(Tokenizer, FolderWithAllFiles) {
    const test::TempDir folder;
    write_file(folder / "tokenizer.json", "\xEF\xBB\xBF" + kSpaced);
    write_file(folder / "tokenizer_config.json", R"({"bos_token": "<s>"})");
    write_file(folder / "special_tokens_map.json", R"({"bos_token": "x", "eos_token": "</s>"})");
    write_file(folder / "added_tokens.json", R"({"<new>": 20})");
    const Tokenizer t = Tokenizer::load(folder.path());
    EXPECT_EQ(t.bos_id(), 0);
    EXPECT_EQ(t.eos_id(), 1);
    EXPECT_EQ(t.encode("<new>", {.add_special = false}), (Ids{20}));
}

// ---- Streaming

std::string streamed(const Tokenizer& t, const Ids& ids, DecodeOptions options) {
    StreamDecoder decoder(t, options);
    const std::string whole = t.decode(ids, options);
    std::string sent;
    for (const int32_t id : ids) {
        const std::string now = decoder.push(id);
        EXPECT_TRUE(text::is_valid_utf8(now));
        sent += now;
        EXPECT_TRUE(whole.starts_with(sent)) << sent << " of " << whole;
    }
    sent += decoder.flush();
    EXPECT_EQ(sent, whole);
    return sent;
}

TEST(StreamDecoder, RandomIdsGiveThePrefixesOfTheWhole) {
    std::mt19937 random(2);
    for (const Tokenizer& t : {tales(), spaced()})
        for (int round = 0; round < 300; ++round) {
            Ids ids(random() % 20);
            for (int32_t& id : ids) id = static_cast<int32_t>(random() % (t.vocab_size() + 2));
            for (const bool skip : {true, false})
                for (const bool continues : {true, false})
                    streamed(t, ids, {.skip_special = skip, .continues = continues});
        }
}

TEST(StreamDecoder, SendsCharactersAsSoonAsTheyAreWhole) {
    const Tokenizer t = tales();
    StreamDecoder decoder(t);
    std::vector<std::string> sent;
    for (const char c : std::string("a\xF0\x9F\x98\x80\xFF"
                                    "b")) {
        // Byte tokens, so that a character takes four.
        std::string stand_in;
        text::append_utf8(stand_in, static_cast<uint8_t>(c) < 0x80 ? static_cast<uint8_t>(c) : 0);
        int32_t id = t.id_of(stand_in).value_or(-1);
        for (int32_t i = 0; id < 0 && i < t.vocab_size(); ++i)
            if (t.bytes_of(i) == std::string(1, c)) id = i;
        sent.push_back(decoder.push(id));
    }
    EXPECT_EQ(sent,
              (std::vector<std::string>{"a", "", "", "", "\xF0\x9F\x98\x80", "\xEF\xBF\xBD", "b"}));
}

TEST(StreamDecoder, KeepsALeadingSpaceWhereTextContinues) {
    const Tokenizer t = spaced();
    EXPECT_EQ(streamed(t, {6, 6}, {}), "ab ab");
    EXPECT_EQ(streamed(t, {6, 6}, {.continues = true}), " ab ab");
}

TEST(StreamDecoder, HoldsRunsOfByteTokens) {
    const Tokenizer t = spaced();
    EXPECT_EQ(streamed(t, {3, 7, 8, 4}, {}),
              "a\xC3\xA9"
              "b");
    EXPECT_EQ(streamed(t, {7, 8, 9}, {}), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD")
        << "a run that is not UTF-8 is one U+FFFD a byte";
}

// ---- Files that are wrong

TEST(TokenizerErrors, NameFileAndKey) {
    const auto has = [](const std::string& error, std::string_view part) {
        EXPECT_NE(error.find(part), error.npos) << error;
    };
    has(error_of(""), "tokenizer.json: at byte 0");
    has(error_of("[]"), "needs an object");
    has(error_of("{}"), "key 'model': missing");
    has(error_of(words().substr(0, 60)), "file ends");
    has(error_of(words() + "x"), "text after the end");
    has(error_of(words("", ", 'normalizer': {'type': 'Rot13'}")),
        "key 'normalizer.type': is the unknown normalizer 'Rot13'");
    has(error_of(words("",
                       ", 'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': "
                       "[{'type': 'Split', 'pattern': {'Regex': '('}}]}")),
        "key 'pre_tokenizer.pretokenizers[0].pattern.Regex': regular expression '('");
    has(error_of(words("", ", 'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': '(?~a)'}}")),
        "absence operator");
    has(error_of(words("", ", 'decoder': {'type': 'Strip', 'content': ' ', 'start': true}")),
        "key 'decoder.start': is a boolean, needs an integer");
    has(error_of(words("",
                       ", 'post_processor': {'type': 'TemplateProcessing', 'single': "
                       "[{'SpecialToken': {'id': 'X'}}], 'special_tokens': {}}")),
        "names 'X', which is not in special_tokens");
    has(error_of(words("", ", 'added_tokens': [{'content': 'x', 'id': -4}]")),
        "key 'added_tokens[0]': id -4 is outside");
    has(error_of(with_quotes("{'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': ['a a']}}")),
        "key 'model.merges[0]': 'a' + 'a' needs both parts and their result");
    has(error_of(with_quotes("{'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': ['a']}}")),
        "needs two tokens");
    has(error_of(with_quotes("{'model': {'type': 'BPE', 'vocab': {'a': 99999999999}}}")),
        "key 'model.vocab.a': id 99999999999 is outside");
    has(error_of(with_quotes("{'model': {'type': 'Unigram', 'unk_id': 3, 'vocab': [['a', 0]]}}")),
        "key 'model.unk_id': is 3");
    has(error_of(with_quotes("{'model': {'type': 'Markov', 'vocab': {}}}")), "'Markov'");
    has(error_of(words(), R"({"added_tokens_decoder": {"x": {"content": "y"}}})"),
        "tokenizer_config.json: at byte");
    has(error_of(words(), R"({"chat_template": [{"name": "x"}]})"),
        "key 'chat_template[0].template': missing");
}

TEST(TokenizerErrors, DeepNestingIsRefused) {
    EXPECT_NE(error_of("{\"a\":" + std::string(100'000, '[')).find("nested deeper"),
              std::string::npos);
    std::string classes = "[";
    for (int i = 0; i < 60; ++i) classes += "a[";
    EXPECT_NE(error_of(words("",
                             ", 'normalizer': {'type': 'Replace', 'content': '', 'pattern': "
                             "{'Regex': '" +
                                 classes + "'}}"))
                  .find("too deeply"),
              std::string::npos);
}

TEST(TokenizerErrors, MissingFolder) {
    const test::TempDir folder;
    try {
        Tokenizer::load(folder.path());
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::io);
        EXPECT_NE(std::string(e.what()).find("neither tokenizer.json nor tokenizer.model"),
                  std::string::npos);
    }
}

// An expression that backtracks without end is stopped; the text is refused, not the process hung.
TEST(TokenizerErrors, RunawayExpressionsAreStopped) {
    const std::string json = words("",
                                   ", 'pre_tokenizer': {'type': 'Split', 'behavior': 'Isolated', "
                                   "'pattern': {'Regex': '(?:a|a|aa)+[c-d]'}}");
    const Tokenizer t = Tokenizer::from_json(json);
    EXPECT_EQ(t.encode("aab"), (Ids{2}));
    try {
        t.encode(std::string(3000, 'a') + "b");
        FAIL() << "expected the step limit";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::invalid_argument);
    }
}

TEST(Tokenizer, LenientJson) {
    const std::string json = words("",
                                   ", 'added_tokens': [{'content': 'x\\ud800y\\ud83d\\ude00', "
                                   "'id': 5, 'special': true, 'special': false}]");
    const Tokenizer t = Tokenizer::from_json(json);
    EXPECT_EQ(t.token_of(5), "x\xEF\xBF\xBDy\xF0\x9F\x98\x80");
    EXPECT_FALSE(t.is_special(5)) << "the last of repeated keys counts";
}

}  // namespace
}  // namespace exl3
