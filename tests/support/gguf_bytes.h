#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/ggml_types.h"
#include "io/gguf.h"

namespace exl3::test {

/// Builds the bytes of a GGUF file, right or wrong, key by key and tensor by tensor.
class GgufBytes {
public:
    uint32_t version = 3;
    uint64_t alignment = 32;  ///< of the data; written as a key only by set()

    template <typename T>
    static std::string raw(T v) {
        std::string s(sizeof v, '\0');
        std::memcpy(s.data(), &v, sizeof v);
        return s;
    }
    static std::string text(std::string_view s) { return raw<uint64_t>(s.size()).append(s); }

    GgufBytes& value(std::string_view key, uint32_t type, std::string bytes) {
        keys_ += text(key) + raw(type) + bytes;
        ++key_count_;
        return *this;
    }
    GgufBytes& set(std::string_view key, std::string_view v) { return value(key, 8, text(v)); }
    GgufBytes& set(std::string_view key, const char* v) { return set(key, std::string_view(v)); }
    GgufBytes& set(std::string_view key, uint32_t v) { return value(key, 4, raw(v)); }
    GgufBytes& set(std::string_view key, int v) { return set(key, static_cast<uint32_t>(v)); }
    GgufBytes& set(std::string_view key, float v) { return value(key, 6, raw(v)); }
    GgufBytes& set(std::string_view key, bool v) { return value(key, 7, raw<uint8_t>(v)); }
    GgufBytes& set(std::string_view key, const std::vector<std::string>& v) {
        std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(v.size());
        for (const std::string& s : v) bytes += text(s);
        return value(key, 9, bytes);
    }
    GgufBytes& set(std::string_view key, const std::vector<int32_t>& v) { return array(key, 5, v); }
    GgufBytes& set(std::string_view key, const std::vector<float>& v) { return array(key, 6, v); }
    GgufBytes& set(std::string_view key, const std::vector<bool>& v) {
        return array(key, 7, std::vector<uint8_t>(v.begin(), v.end()));
    }

    /// @param dims  slowest first, as everywhere in this project
    GgufBytes& tensor(std::string_view name, uint32_t type, const std::vector<int64_t>& dims,
                      std::string_view data) {
        std::string head = text(name) + raw(static_cast<uint32_t>(dims.size()));
        for (auto d = dims.rbegin(); d != dims.rend(); ++d) head += raw<int64_t>(*d);
        pad(data_);
        infos_ += head + raw(type) + raw<uint64_t>(data_.size());
        data_ += data;
        ++tensor_count_;
        return *this;
    }
    GgufBytes& tensor(std::string_view name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
        return tensor(name, 0, dims,
                      {reinterpret_cast<const char*>(values.data()), values.size() * 4});
    }

    std::string str() const {
        std::string s = "GGUF" + raw(version) + raw(tensor_count_) + raw(key_count_);
        s += keys_ + infos_;
        pad(s);
        return s + data_;
    }

private:
    template <typename T>
    GgufBytes& array(std::string_view key, uint32_t element, const std::vector<T>& v) {
        std::string bytes = raw(element) + raw<uint64_t>(v.size());
        for (const T x : v) bytes += raw(x);
        return value(key, 9, bytes);
    }
    void pad(std::string& s) const {
        while (s.size() % alignment != 0) s += '\0';
    }

    std::string keys_, infos_, data_;
    uint64_t key_count_ = 0, tensor_count_ = 0;
};

/// A tiny Llama that imports: one layer, 4 heads of 4, vocabulary of 8, byte-level tokens.
inline GgufBytes tiny_llama_gguf() {
    GgufBytes g;
    g.set("general.architecture", "llama")
        .set("llama.block_count", 1)
        .set("llama.context_length", 64)
        .set("llama.embedding_length", 16)
        .set("llama.feed_forward_length", 32)
        .set("llama.attention.head_count", 4)
        .set("llama.attention.head_count_kv", 2)
        .set("llama.attention.layer_norm_rms_epsilon", 1e-5f)
        .set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.pre", "llama-bpe")
        .set("tokenizer.ggml.tokens",
             std::vector<std::string>{"a", "b", "c", "ab", "<s>", "</s>", "<tool>", "x"})
        .set("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 1, 1, 3, 1, 4, 5})
        .set("tokenizer.ggml.merges", std::vector<std::string>{"a b"})
        .set("tokenizer.ggml.bos_token_id", 4)
        .set("tokenizer.ggml.eos_token_id", 5);
    const auto ramp = [](int64_t n, float from) {
        std::vector<float> v;
        for (int64_t i = 0; i < n; ++i) v.push_back(from + 0.125f * static_cast<float>(i % 64));
        return v;
    };
    g.tensor("token_embd.weight", {8, 16}, ramp(128, 0))
        .tensor("output_norm.weight", {16}, ramp(16, 1))
        .tensor("blk.0.attn_norm.weight", {16}, ramp(16, 1))
        .tensor("blk.0.attn_q.weight", {16, 16}, ramp(256, -1))
        .tensor("blk.0.attn_k.weight", {8, 16}, ramp(128, -2))
        .tensor("blk.0.attn_v.weight", {8, 16}, ramp(128, -3))
        .tensor("blk.0.attn_output.weight", {16, 16}, ramp(256, -4))
        .tensor("blk.0.ffn_norm.weight", {16}, ramp(16, 1))
        .tensor("blk.0.ffn_gate.weight", {32, 16}, ramp(512, 0))
        .tensor("blk.0.ffn_up.weight", {32, 16}, ramp(512, -1))
        .tensor("blk.0.ffn_down.weight", {16, 32}, ramp(512, -2));
    return g;
}

}  // namespace exl3::test
