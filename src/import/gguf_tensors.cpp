#include "import/gguf_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "base/half.h"

namespace exl3 {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 21;  // 8 MiB of f32 between two writes
constexpr int64_t kMostExperts = 65536;               // of a layer; no model comes near
constexpr int64_t kGrainElements = int64_t{1} << 16;  // enough work for one call of a thread

int64_t row_length(const GgufTensor& t) {
    return t.dims.empty() ? 1 : t.dims.back();
}

// Which row of the file is row `r` of the checkpoint. Within each head of 2 x half rows, the file
// has (first, second) of every rotary pair beside each other, the checkpoint all firsts, then all
// seconds.
int64_t source_row(int64_t r, int64_t rows, int heads) {
    if (heads == 0) return r;
    const int64_t head_dim = rows / heads, half = head_dim / 2;
    const int64_t head = r / head_dim, in_head = r % head_dim;
    return head * head_dim + 2 * (in_head % half) + in_head / half;
}

/// Decodes rows [begin, end) of the checkpoint's tensor into f32.
void decode_rows(const ImportedTensor& t, int64_t begin, int64_t end, float* out) {
    const GgufTensor& s = *t.source;
    const int64_t length = row_length(s), rows = t.numel() / length;
    const int64_t row_bytes = length / s.layout->elements * s.layout->bytes;
    const int heads = t.dims.size() > 1 ? t.paired_heads : 0;
    for (int64_t r = begin; r < end; ++r)
        ggml_to_f32(*s.layout, s.data + (t.first_row + source_row(r, rows, heads)) * row_bytes,
                    length, out + (r - begin) * length);
    if (t.minus_one)
        for (int64_t i = 0; i < (end - begin) * length; ++i) out[i] -= 1;
}

// The bias of a matrix whose rows were reordered: a vector of as many elements.
bool reorders_elements(const ImportedTensor& t) {
    return t.paired_heads > 0 && t.dims.size() == 1;
}

float rounded(float v, DType dtype) {
    switch (dtype) {
        case DType::f16: return to_float(to_f16(v));
        case DType::bf16: return to_float(to_bf16(v));
        default: return v;
    }
}

void store(float v, DType dtype, std::byte* to) {
    if (dtype == DType::f32) {
        std::memcpy(to, &v, sizeof v);
        return;
    }
    const uint16_t bits = dtype == DType::f16 ? to_f16(v).bits : to_bf16(v).bits;
    std::memcpy(to, &bits, sizeof bits);
}

// Calls fn(first row, rows, values) for pieces of the tensor, decoded by all threads.
template <typename Fn>
void each_piece(ThreadPool& pool, const ImportedTensor& t, Fn&& fn) {
    const int64_t length = row_length(*t.source), rows = t.numel() / length;
    const int64_t step = std::max<int64_t>(1, kPieceElements / length);
    const int64_t grain = std::max<int64_t>(1, kGrainElements / length);
    std::vector<float> values(static_cast<size_t>(std::min(step, rows) * length));
    for (int64_t at = 0; at < rows; at += step) {
        const int64_t n = std::min(step, rows - at);
        pool.parallel_for(n, grain, [&](int64_t b, int64_t e) {
            decode_rows(t, at + b, at + e, values.data() + b * length);
        });
        if (reorders_elements(t)) {
            std::vector<float> stored(values);
            for (int64_t i = 0; i < length; ++i)
                values[static_cast<size_t>(i)] =
                    stored[static_cast<size_t>(source_row(i, length, t.paired_heads))];
        }
        fn(std::span<const float>(values.data(), static_cast<size_t>(n * length)));
    }
}

/// Whether every number of the tensor comes back from `dtype` as it was in the file.
bool survives(ThreadPool& pool, const ImportedTensor& t, DType dtype) {
    bool exact = true;
    each_piece(pool, t, [&](std::span<const float> values) {
        for (size_t i = 0; exact && i < values.size(); ++i) {
            const float back = rounded(values[i], dtype);
            // One was added in f32 when the file was made, so the number has lost its last bits.
            exact = t.minus_one ? back + 1 == values[i] + 1 : back == values[i];
        }
    });
    return exact;
}

}  // namespace

DType choose_dtype(ThreadPool& pool, const ImportedTensor& t) {
    switch (t.source->layout->type) {
        case GgmlType::bf16: return DType::bf16;
        case GgmlType::f16: return DType::f16;
        case GgmlType::f32:
        case GgmlType::f64:
            for (const DType d : {DType::bf16, DType::f16})
                if (survives(pool, t, d)) return d;
            return DType::f32;
        default: return DType::f16;
    }
}

namespace {

// Embedding first, then layers by number, norm and head.
std::pair<int, std::string> place_of(const std::string& name) {
    constexpr std::string_view kLayers = "model.layers.";
    if (name.starts_with("model.embed_tokens")) return {-1, name};
    if (!name.starts_with(kLayers)) return {std::numeric_limits<int>::max(), name};
    int layer = 0;
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
    return {layer, name};
}

int paired_heads(const GgufFamily& family, const Json& config, const std::string& name) {
    if (!family.paired_rows) return 0;
    if (name.find(".self_attn.q_proj.") != std::string::npos)
        return config.at("num_attention_heads").get<int>();
    if (name.find(".self_attn.k_proj.") != std::string::npos)
        return config.at("num_key_value_heads").get<int>();
    return 0;
}

}  // namespace

int64_t ImportedTensor::numel() const {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
}

std::vector<ImportedTensor> plan_tensors(const GgufModel& gguf, const GgufFamily& family,
                                         const Json& config) {
    std::vector<ImportedTensor> plan;
    for (const auto& [name, source] : gguf.tensors()) {
        ImportedTensor t;
        t.name = checkpoint_name(gguf, family, source);
        if (t.name.empty()) continue;
        t.source = &source;
        t.file = gguf.where(source).file;
        if (!source.layout)
            throw Error(
                Errc::unsupported, gguf.where(source),
                fmt::format("found the tensor type {}, which cannot be decoded", source.type));
        t.paired_heads = paired_heads(family, config, t.name);
        const int64_t rows = source.dims.empty() ? 1 : source.dims.front();
        if (t.paired_heads > 0 && rows % (int64_t{2} * t.paired_heads) != 0)
            throw Error(Errc::invalid_file, gguf.where(source),
                        fmt::format("found {} rows, needed a multiple of 2 x {} heads", rows,
                                    t.paired_heads));
        t.minus_one = family.norms_plus_one && t.name.ends_with("norm.weight");
        t.dims = source.dims;
        const size_t star = t.name.find('*');
        if (star == std::string::npos) {
            plan.push_back(std::move(t));
            continue;
        }
        if (source.dims.size() != 3 || source.dims[0] > kMostExperts)
            throw Error(Errc::invalid_file, gguf.where(source),
                        fmt::format("found the shape {}, needed (experts up to {}, rows, columns)",
                                    to_string(source.dims), kMostExperts));
        t.dims.erase(t.dims.begin());
        for (int64_t e = 0; e < source.dims[0]; ++e) {
            ImportedTensor one = t;
            one.name.replace(star, 1, std::to_string(e));
            one.first_row = e * source.dims[1];
            plan.push_back(std::move(one));
        }
    }
    std::sort(plan.begin(), plan.end(), [](const ImportedTensor& a, const ImportedTensor& b) {
        return place_of(a.name) < place_of(b.name);
    });
    return plan;
}

void write_tensor(ThreadPool& pool, const ImportedTensor& t, SafetensorsWriter& out,
                  const std::function<void(uint64_t bytes)>& after_piece) {
    const size_t size = size_of(t.dtype);
    std::vector<std::byte> bytes;
    each_piece(pool, t, [&](std::span<const float> values) {
        bytes.resize(values.size() * size);
        std::atomic<size_t> bad{values.size()};
        pool.parallel_for(
            static_cast<int64_t>(values.size()), kGrainElements, [&](int64_t b, int64_t e) {
                for (auto i = static_cast<size_t>(b); i < static_cast<size_t>(e); ++i) {
                    store(values[i], t.dtype, bytes.data() + i * size);
                    if (!std::isfinite(rounded(values[i], t.dtype))) bad = i;
                }
            });
        if (bad < values.size())
            throw Error(
                std::isfinite(values[bad]) ? Errc::unsupported : Errc::invalid_file,
                {t.file, t.source->name, {}},
                fmt::format("decodes to {}, which {} cannot hold{}", values[bad], name_of(t.dtype),
                            std::isfinite(values[bad]) ? "; use --dtype bf16 or f32" : ""));
        out.write(bytes.data(), bytes.size());
        after_piece(bytes.size());
    });
}

}  // namespace exl3
