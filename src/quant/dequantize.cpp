#include "quant/dequantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "arch/arch.h"
#include "base/log.h"
#include "io/mapped_file.h"
#include "io/output_folder.h"
#include "io/shards.h"
#include "model/head.h"
#include "quant/write_model.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

/// A tensor of the output, and how its bytes are made when its turn comes.
struct OutTensor {
    DType dtype = DType::f32;
    std::vector<int64_t> dims;
    std::function<Bytes()> make;
    uint64_t bytes() const {
        uint64_t n = size_of(dtype);
        for (const int64_t d : dims) n *= static_cast<uint64_t>(d);
        return n;
    }
};

/// Converts one number after another into dense bytes of a float type.
void store(float value, DType dtype, std::byte* to, const Where& where) {
    if (dtype == DType::f32) {
        std::memcpy(to, &value, sizeof value);
        return;
    }
    const uint16_t bits = dtype == DType::f16 ? to_f16(value).bits : to_bf16(value).bits;
    if (dtype == DType::f16 && (bits & 0x7c00) == 0x7c00)
        throw Error(Errc::unsupported, where,
                    fmt::format("decodes to {}, which f16 cannot hold; use bf16 or f32", value));
    std::memcpy(to, &bits, sizeof bits);
}

class Dequantizer {
public:
    Dequantizer(Stream& s, const DequantizeOptions& o)
        : s_(s), o_(o), source_(Checkpoint::open(o.source)), spec_(describe(source_)) {}

    DequantizeReport run() {
        collect();
        if (report_.matrices == 0)
            throw Error(Errc::invalid_argument, {source_.folder().string(), {}, {}},
                        "found no EXL3 matrix, needed at least one");
        OutputFolder folder(o_.output);
        write_weights(folder.path());
        write_file(folder.path() / "config.json", config().dump(4) + "\n");
        copy_side_files(source_.folder(), folder.path());
        folder.commit();
        return report_;
    }

private:
    // Matrices that the model knows, those it does not (draft heads), then everything else.
    void collect() {
        std::map<std::string, std::vector<LinearSpec>> stacked;
        std::vector<LinearSpec> known;
        for (const BlockSpec& block : spec_.blocks)
            for (LinearSpec& l : linears_of(block, spec_.hidden)) known.push_back(std::move(l));
        known.push_back(resolve_head(source_, spec_));
        for (LinearSpec& l : known) {
            if (l.fused.empty() || l.head) {
                if (!is_exl3(source_, l.key)) continue;
                l.parts.empty() ? add_matrix(l) : add_parts(l);
            } else {
                stacked[l.fused].push_back(std::move(l));
            }
        }
        for (auto& [key, parts] : stacked)
            if (std::any_of(parts.begin(), parts.end(),
                            [&](const LinearSpec& l) { return is_exl3(source_, l.key); }))
                add_stack(key, parts);
        for (const auto& [name, entry] : source_.tensors())
            if (name.ends_with(".trellis") && !used_.contains(name)) add_unknown(name);
        for (const auto& [name, entry] : source_.tensors())
            if (!used_.contains(name)) add_copy(name, *entry.info);
    }

    void mark_used(const Key& key) {
        for (const char* part :
             {"trellis", "suh", "svh", "su", "sv", "mcg", "mul1", "scale", "bias", "weight"})
            used_.insert((key / part).str());
    }

    void add(const std::string& name, OutTensor t) {
        report_.bytes += t.bytes();
        out_.emplace(name, std::move(t));
    }

    void add_matrix(const LinearSpec& l) {
        mark_used(l.key);
        ++report_.matrices;
        add((l.key / "weight").str(), {o_.dtype, {l.out, l.in}, [this, l] {
                                           Bytes rows(size_of(o_.dtype) * l.out * l.in);
                                           decode(l, rows.data());
                                           return rows;
                                       }});
        if (source_.has((l.key / "bias").str()))
            add((l.key / "bias").str(), {o_.dtype, {l.out}, [this, l] {
                                             Bytes row(size_of(o_.dtype) * l.out);
                                             bias(l, row.data());
                                             return row;
                                         }});
    }

    // A matrix that the architecture stores as several, taken apart again.
    void add_parts(const LinearSpec& l) {
        mark_used(l.key);
        ++report_.matrices;
        const bool has_bias = source_.has((l.key / "bias").str());
        int begin = 0;
        for (const auto& part : l.parts) {
            const auto rows_of = [this, l, begin, rows = part.rows](int64_t width, auto&& fill) {
                const size_t row = size_of(o_.dtype) * static_cast<size_t>(width);
                Bytes all(row * static_cast<size_t>(l.out));
                fill(l, all.data());
                const auto from = all.begin() + static_cast<int64_t>(row) * begin;
                return Bytes(from, from + static_cast<int64_t>(row) * rows);
            };
            add((part.key / "weight").str(),
                {o_.dtype, {part.rows, l.in}, [this, rows_of, l] {
                     return rows_of(l.in,
                                    [this](const LinearSpec& m, std::byte* to) { decode(m, to); });
                 }});
            if (has_bias)
                add((part.key / "bias").str(),
                    {o_.dtype, {part.rows}, [this, rows_of] {
                         return rows_of(
                             1, [this](const LinearSpec& m, std::byte* to) { bias(m, to); });
                     }});
            begin += part.rows;
        }
    }

    // Parts that the architecture stores as one tensor, put back at their rows.
    void add_stack(const Key& key, const std::vector<LinearSpec>& parts) {
        const LinearSpec& first = parts.front();
        bool has_bias = false;
        for (const LinearSpec& l : parts) {
            mark_used(l.key);
            report_.matrices += is_exl3(source_, l.key);
            has_bias = has_bias || source_.has((l.key / "bias").str());
        }
        // One matrix, or one for each expert.
        std::vector<int64_t> weight_dims = {first.fused_rows, first.in};
        if (first.transposed) std::swap(weight_dims[0], weight_dims[1]);
        std::vector<int64_t> bias_dims = {first.fused_rows};
        if (first.experts > 0) {
            weight_dims.insert(weight_dims.begin(), first.experts);
            bias_dims.insert(bias_dims.begin(), first.experts);
        }
        const std::string weight = first.bare ? key.str() : (key / "weight").str();
        const std::string biases = first.bare ? key.str() + "_bias" : (key / "bias").str();
        add(weight, {o_.dtype, weight_dims, [this, parts] { return join_weights(parts); }});
        if (has_bias)
            add(biases, {o_.dtype, bias_dims, [this, parts] { return join_biases(parts); }});
    }

    Bytes join_weights(const std::vector<LinearSpec>& parts) {
        const size_t size = size_of(o_.dtype);
        const LinearSpec& first = parts.front();
        const auto numel = static_cast<size_t>(first.fused_rows) * static_cast<size_t>(first.in);
        Bytes all(size * numel * static_cast<size_t>(std::max(1, first.experts)));
        Bytes own;
        for (const LinearSpec& l : parts) {
            own.resize(size * static_cast<size_t>(l.out) * static_cast<size_t>(l.in));
            decode(l, own.data());
            std::byte* stack = all.data() + size * numel * static_cast<size_t>(l.expert);
            for (int j = 0; j < l.out; ++j) {
                const std::byte* row = own.data() + size * static_cast<size_t>(j) * l.in;
                const int64_t r = l.fused_row + int64_t{j} * l.fused_step;
                if (!l.transposed) {
                    std::memcpy(stack + size * static_cast<size_t>(r * l.in), row, size * l.in);
                    continue;
                }
                for (int64_t i = 0; i < l.in; ++i)
                    std::memcpy(stack + size * static_cast<size_t>(i * l.fused_rows + r),
                                row + size * static_cast<size_t>(i), size);
            }
        }
        return all;
    }

    Bytes join_biases(const std::vector<LinearSpec>& parts) {
        const size_t size = size_of(o_.dtype);
        const LinearSpec& first = parts.front();
        Bytes all(size * static_cast<size_t>(first.fused_rows) *
                  static_cast<size_t>(std::max(1, first.experts)));
        Bytes own;
        for (const LinearSpec& l : parts) {
            own.assign(size * static_cast<size_t>(l.out), std::byte{0});
            bias(l, own.data());
            for (int64_t j = 0; j < l.out; ++j)
                std::memcpy(
                    all.data() + size * static_cast<size_t>(int64_t{l.expert} * l.fused_rows +
                                                            l.fused_row + j * l.fused_step),
                    own.data() + size * static_cast<size_t>(j), size);
        }
        return all;
    }

    // No architecture tells its true sizes, so it keeps the stored ones.
    void add_unknown(const std::string& trellis) {
        const auto& dims = source_.find(trellis).info->dims;
        if (dims.size() != 3 || dims[0] > (1 << 24) || dims[1] > (1 << 24))
            throw Error(
                Errc::invalid_file, source_.where(trellis),
                fmt::format("found shape {}, needed (k/16, n/16, 16*bits)", to_string(dims)));
        log(LogLevel::warn, "{}: '{}' is no part of {} here; it keeps its padded size",
            source_.folder().string(), trellis, spec_.architecture);
        add_matrix({.key = trellis.substr(0, trellis.rfind('.')),
                    .in = static_cast<int>(dims[0] * kTile),
                    .out = static_cast<int>(dims[1] * kTile)});
    }

    void add_copy(const std::string& name, const TensorInfo& info) {
        add(name, {info.dtype, info.dims, [this, name, n = info.bytes] {
                       Bytes copy(n);
                       if (n > 0) std::memcpy(copy.data(), source_.view(name).data, n);
                       return copy;
                   }});
    }

    // The weight of a matrix, (out, in), at `to`. Both orders are walked in blocks, so that each
    // cache line that is fetched is used whole.
    void decode(const LinearSpec& l, std::byte* to) {
        const size_t size = size_of(o_.dtype);
        const Where where = source_.where((l.key / "trellis").str());
        if (!is_exl3(source_, l.key)) {
            const std::vector<float> w = read_dense_weight(source_, l);
            for (size_t i = 0; i < w.size(); ++i) store(w[i], o_.dtype, to + i * size, where);
            return;
        }
        const Exl3Matrix m = read_exl3(source_, l);
        const std::vector<float> w = reconstruct(s_, m);
        constexpr int kBlock = 64;
        for (int i0 = 0; i0 < l.in; i0 += kBlock)
            for (int j = 0; j < l.out; ++j)
                for (int i = i0; i < std::min(i0 + kBlock, l.in); ++i)
                    store(w[static_cast<size_t>(i) * m.n + j], o_.dtype,
                          to + (static_cast<size_t>(j) * l.in + i) * size, where);
    }

    void bias(const LinearSpec& l, std::byte* to) {
        const std::vector<float> b = read_bias(source_, l);
        for (size_t i = 0; i < b.size(); ++i)
            store(b[i], o_.dtype, to + i * size_of(o_.dtype),
                  source_.where((l.key / "bias").str()));
    }

    void write_weights(const fs::path& folder) {
        std::vector<TensorToMake> tensors;
        uint64_t done = 0;
        for (const auto& entry : out_) {
            const OutTensor& t = entry.second;
            tensors.push_back({entry.first, t.dtype, t.dims, [&](SafetensorsWriter& out) {
                                   if (o_.cancel && *o_.cancel)
                                       throw Error(Errc::cancelled, {}, "interrupted");
                                   const Bytes bytes = t.make();
                                   out.write(bytes.data(), bytes.size());
                                   done += bytes.size();
                                   if (o_.progress)
                                       o_.progress(static_cast<int64_t>(done),
                                                   static_cast<int64_t>(report_.bytes));
                               }});
        }
        write_shards(folder, tensors, o_.shard_mb);
    }

    Json config() const {
        Json c = source_.config().json();
        c.erase("quantization_config");
        const char* dtype = o_.dtype == DType::f16    ? "float16"
                            : o_.dtype == DType::bf16 ? "bfloat16"
                                                      : "float32";
        if (!c.contains("dtype") && !c.contains("torch_dtype")) c["torch_dtype"] = dtype;
        const bool untie = spec_.tied_head && out_.contains((spec_.head.key / "weight").str());
        for (Json* level : {&c, c.contains("text_config") ? &c["text_config"] : nullptr}) {
            if (!level) continue;
            for (const char* key : {"dtype", "torch_dtype"})
                if (level->contains(key)) (*level)[key] = dtype;
            if (untie) (*level)["tie_word_embeddings"] = false;
        }
        return c;
    }

    Stream& s_;
    const DequantizeOptions& o_;
    Checkpoint source_;
    ModelSpec spec_;
    std::set<std::string> used_;  // tensors of the source that need no copy
    std::map<std::string, OutTensor> out_;
    DequantizeReport report_;
};

}  // namespace

DequantizeReport dequantize(Stream& s, const DequantizeOptions& options) {
    EXL3_CHECK(options.dtype == DType::f16 || options.dtype == DType::bf16 ||
               options.dtype == DType::f32);
    return Dequantizer(s, options).run();
}

}  // namespace exl3
