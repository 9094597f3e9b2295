#include "model/linear.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "io/convert.h"
#include "io/validate.h"
#include "ops/ops.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

class LinearDense final : public Linear {
public:
    LinearDense(Tensor weight, Tensor bias) : weight_(std::move(weight)), bias_(std::move(bias)) {}
    void forward(Stream& s, ConstView x, View y) const override {
        ops::linear(s, {.x = x, .weight = weight_.view, .bias = bias_.view, .y = y});
    }
    LinearInfo info() const override {
        const Shape& shape = weight_.view.shape;
        const size_t element = size_of(weight_.view.dtype);
        return {static_cast<int>(shape[1]), static_cast<int>(shape[0]), 8.0 * element,
                static_cast<uint64_t>(shape.numel()) * element};
    }
    LinearParts parts() const override { return {.weight = weight_.view, .bias = bias_.view}; }

private:
    Tensor weight_, bias_;
};

class LinearExl3 final : public Linear {
public:
    LinearExl3(Stream& s, const Exl3Matrix& m, int in, int out)
        : in_(in), out_(out), bits_(m.bits), codebook_(m.codebook) {
        Device& d = s.device();
        const Shape shape = {m.k / kTile, m.n / kTile, tile_words(m.bits)};
        packed_ = d.make_tensor(DType::i16, shape);
        ops::exl3_repack(s, {.trellis = dense(m.trellis.data(), DType::i16, shape),
                             .packed = packed_.view,
                             .bits = m.bits});
        suh_ = vector(s, m.suh.data(), DType::f16, m.k);
        svh_ = vector(s, m.svh.data(), DType::f16, m.n);
        if (!m.bias.empty()) bias_ = vector(s, m.bias.data(), DType::f32, m.n);
    }
    void forward(Stream& s, ConstView x, View y) const override {
        ops::exl3_linear(s, {.x = x,
                             .packed = packed_.view,
                             .suh = suh_.view,
                             .svh = svh_.view,
                             .bias = bias_.view,
                             .y = y,
                             .codebook = codebook_,
                             .bits = bits_});
    }
    LinearInfo info() const override {
        return {in_, out_, static_cast<double>(bits_), packed_.bytes->bytes()};
    }
    LinearParts parts() const override {
        return {.bits = bits_,
                .codebook = codebook_,
                .weight = packed_.view,
                .suh = suh_.view,
                .svh = svh_.view,
                .bias = bias_.view};
    }

private:
    static Tensor vector(Stream& s, const void* data, DType dtype, int64_t n) {
        Tensor t = s.device().make_tensor(dtype, {n});
        s.copy(dense(data, dtype, {n}), t.view);
        return t;
    }
    int in_, out_, bits_;
    Codebook codebook_;
    Tensor packed_, suh_, svh_, bias_;
};

[[noreturn]] void refuse(const Checkpoint& c, const std::string& name, const std::string& what) {
    throw Error(Errc::invalid_file, c.where(name), what);
}

const TensorInfo& require(const Checkpoint& c, const std::string& name, DType dtype) {
    const auto e = c.find(name);
    if (!e.info) throw Error(Errc::invalid_file, {c.folder().string(), name, {}}, "is missing");
    if (e.info->dtype != dtype)
        refuse(c, name,
               fmt::format("is {}, needs to be {}", name_of(e.info->dtype), name_of(dtype)));
    return *e.info;
}

// Channels of a scale tensor: f16 values, or packed signs of files older than v0.0.1.
std::vector<f16> read_scales(const Checkpoint& c, const Key& key, const char* values,
                             const char* signs, int64_t channels) {
    const std::string name = key / values;
    std::vector<f16> out(static_cast<size_t>(channels));
    if (c.has(name)) {
        const TensorInfo& info = require(c, name, DType::f16);
        if (info.dims != std::vector<int64_t>{channels})
            refuse(c, name,
                   fmt::format("has shape {}, needs ({})", to_string(info.dims), channels));
        require_finite(c, name);
        std::memcpy(out.data(), c.view(name).data, out.size() * sizeof(f16));
        return out;
    }
    const std::string packed = key / signs;
    const TensorInfo& info = require(c, packed, DType::i16);
    if (info.dims != std::vector<int64_t>{channels / 16})
        refuse(c, packed,
               fmt::format("has shape {}, needs ({})", to_string(info.dims), channels / 16));
    std::vector<uint16_t> words(static_cast<size_t>(channels / 16));
    std::memcpy(words.data(), c.view(packed).data, words.size() * sizeof(uint16_t));
    for (size_t i = 0; i < out.size(); ++i)
        out[i] = to_f16(words[i / 16] >> (i % 16) & 1 ? -1.0f : 1.0f);
    return out;
}

// The marker tensors name the codebook; before v0.0.9 their value was its multiplier.
Codebook read_codebook(const Checkpoint& c, const Key& key) {
    const std::string mcg = key / "mcg", mul1 = key / "mul1";
    if (c.has(mcg) && c.has(mul1))
        refuse(c, mul1, "stands beside '" + mcg + "', needs one codebook marker at most");
    if (!c.has(mcg) && !c.has(mul1)) return kThreeInst;
    const std::string& name = c.has(mul1) ? mul1 : mcg;
    const TensorInfo& info = require(c, name, DType::i32);
    if (info.numel() != 1)
        refuse(c, name, fmt::format("has shape {}, needs one number", to_string(info.dims)));
    Codebook codebook = c.has(mul1) ? kMul1 : kMcg;
    std::memcpy(&codebook.multiplier, c.view(name).data, sizeof(uint32_t));
    return codebook;
}

}  // namespace

bool is_exl3(const Checkpoint& c, const Key& key) {
    return c.has((key / "trellis").str());
}

Exl3Matrix read_exl3(const Checkpoint& c, const LinearSpec& spec) {
    const std::string name = spec.key / "trellis";
    const TensorInfo& info = require(c, name, DType::i16);
    const auto& d = info.dims;
    if (d.size() != 3 || d[2] % 16 != 0 || d[2] < 16 || d[2] > 128 || d[0] % 8 != 0 ||
        d[1] % 8 != 0)
        refuse(c, name,
               fmt::format("has shape {}, needs (k/16, n/16, 16*bits) with k and n multiples "
                           "of 128 and 1 to 8 bits",
                           to_string(d)));
    Exl3Matrix m{.k = d[0] * kTile, .n = d[1] * kTile, .bits = static_cast<int>(d[2] / 16)};
    const auto padded = [](int64_t size) { return (size + 127) / 128 * 128; };
    if (m.k != padded(spec.in) || m.n != padded(spec.out))
        refuse(c, name,
               fmt::format("codes a matrix of {} by {}, the model needs {} by {}", m.k, m.n,
                           spec.in, spec.out));
    m.codebook = read_codebook(c, spec.key);
    m.suh = read_scales(c, spec.key, "suh", "su", m.k);
    m.svh = read_scales(c, spec.key, "svh", "sv", m.n);
    m.trellis.resize(static_cast<size_t>(m.k / kTile * (m.n / kTile) * tile_words(m.bits)));
    std::memcpy(m.trellis.data(), c.view(name).data, m.trellis.size() * sizeof(uint16_t));
    if (c.has((spec.key / "bias").str())) {
        m.bias = read_bias(c, spec);
        m.bias.resize(static_cast<size_t>(m.n), 0.0f);
    }
    undo_divisor(m, spec);
    return m;
}

std::vector<float> reconstruct(Stream& s, const Exl3Matrix& m) {
    std::vector<float> w(static_cast<size_t>(m.k * m.n));
    const Shape packed_shape = {m.k / kTile, m.n / kTile, tile_words(m.bits)};
    const Tensor packed = s.device().make_tensor(DType::i16, packed_shape);
    const Tensor inner = s.device().make_tensor(DType::f32, {m.k, m.n});
    ops::exl3_repack(s, {.trellis = dense(m.trellis.data(), DType::i16, packed_shape),
                         .packed = packed.view,
                         .bits = m.bits});
    ops::exl3_decode(
        s, {.packed = packed.view, .y = inner.view, .codebook = m.codebook, .bits = m.bits});
    ops::hadamard(s, {.x = inner.view, .columns = true});
    ops::hadamard(s, {.x = inner.view});
    s.copy(inner.view, dense(w.data(), DType::f32, {m.k, m.n}));
    s.synchronize();
    for (int64_t i = 0; i < m.k; ++i)
        for (int64_t j = 0; j < m.n; ++j)
            w[static_cast<size_t>(i * m.n + j)] *=
                to_float(m.suh[static_cast<size_t>(i)]) * to_float(m.svh[static_cast<size_t>(j)]);
    return w;
}

LinearSource source_of(const Checkpoint& c, const LinearSpec& spec) {
    const std::string own = spec.key / "weight";
    if (spec.fused.empty() || c.has(own)) return {own, spec.key / "bias", false};
    if (spec.bare) return {spec.fused.str(), spec.fused.str() + "_bias", true};
    return {spec.fused / "weight", spec.fused / "bias", true};
}

namespace {

// Finds the weight of a matrix and checks its shape.
const TensorInfo& find_weight(const Checkpoint& c, const LinearSpec& spec, const LinearSource& at) {
    const auto e = c.find(at.weight);
    if (!e.info)
        throw Error(Errc::invalid_file, {c.folder().string(), at.weight, {}},
                    "is missing, and there is no '" + (spec.key / "trellis").str() + "'");
    std::vector<int64_t> want = {at.fused ? spec.fused_rows : spec.out, spec.in};
    if (at.fused && spec.transposed) std::swap(want[0], want[1]);
    if (at.fused && spec.experts > 0) want.insert(want.begin(), spec.experts);
    if (e.info->dims != want)
        refuse(c, at.weight,
               fmt::format("has shape {}, the model needs {}", to_string(e.info->dims),
                           to_string(want)));
    return *e.info;
}

/// Where element (row, column) of a matrix stands in the part of a stacked tensor that holds it.
struct StackedRows {
    const LinearSpec& spec;
    int64_t at(int64_t row, int64_t column) const {
        const int64_t r = spec.fused_row + row * spec.fused_step;
        return spec.transposed ? column * spec.fused_rows + r : r * spec.in + column;
    }
};

// The rows of one matrix out of a stacked tensor. @param part  the tensor, or its matrix
// spec.expert
template <typename T>
std::vector<T> gather_rows(const LinearSpec& spec, const T* part) {
    std::vector<T> w(static_cast<size_t>(spec.out) * static_cast<size_t>(spec.in));
    const StackedRows rows{spec};
    for (int64_t j = 0; j < spec.out; ++j)
        for (int64_t i = 0; i < spec.in; ++i)
            w[static_cast<size_t>(j * spec.in + i)] = part[rows.at(j, i)];
    return w;
}

// The weight of a stacked source as it is, without a detour over f32.
template <typename T>
std::vector<T> gather_typed(const Checkpoint& c, const LinearSpec& spec, const TensorInfo& info) {
    const auto numel = static_cast<size_t>(spec.fused_rows) * static_cast<size_t>(spec.in);
    std::vector<T> part(numel);  // bytes of a file are aligned to nothing
    std::memcpy(part.data(),
                static_cast<const std::byte*>(c.view(info.name).data) +
                    static_cast<size_t>(spec.expert) * numel * sizeof(T),
                numel * sizeof(T));
    return gather_rows(spec, part.data());
}

Tensor upload(Stream& s, const void* data, DType dtype, Shape shape) {
    Tensor t = s.device().make_tensor(dtype, shape);
    s.copy(dense(data, dtype, shape), t.view);
    return t;
}

}  // namespace

namespace {

// Whether the matrix stands in parts, which are joined when they are read.
bool in_parts(const Checkpoint& c, const LinearSpec& spec) {
    return !spec.parts.empty() && !c.has((spec.key / "weight").str()) && !is_exl3(c, spec.key);
}

LinearSpec part_of(const LinearSpec& spec, const LinearSpec::Part& part) {
    return {.key = part.key, .in = spec.in, .out = part.rows};
}

std::vector<float> join_weights(const Checkpoint& c, const LinearSpec& spec) {
    std::vector<float> all;
    for (const auto& part : spec.parts) {
        const std::vector<float> w = read_dense_weight(c, part_of(spec, part));
        all.insert(all.end(), w.begin(), w.end());
    }
    return all;
}

// Empty where no part has a bias; zeros for those that have none.
std::vector<float> join_biases(const Checkpoint& c, const LinearSpec& spec) {
    std::vector<float> all;
    bool any = false;
    for (const auto& part : spec.parts) {
        std::vector<float> b = read_bias(c, part_of(spec, part));
        any = any || !b.empty();
        b.resize(static_cast<size_t>(part.rows));
        all.insert(all.end(), b.begin(), b.end());
    }
    return any ? all : std::vector<float>();
}

}  // namespace

std::vector<float> read_dense_weight(const Checkpoint& c, const LinearSpec& spec) {
    if (in_parts(c, spec)) return join_weights(c, spec);
    const LinearSource at = source_of(c, spec);
    if (at.fused && spec.experts > 0 && is_mxfp4(c, at.weight)) {
        // Blocks are always (experts, out, in).
        LinearSpec plain = spec;
        plain.transposed = false;
        const std::vector<float> part =
            read_mxfp4(c, at.weight, spec.expert, {spec.experts, spec.fused_rows, spec.in});
        return gather_rows(plain, part.data());
    }
    find_weight(c, spec, at);
    if (!at.fused) return read_f32(c, at.weight);
    const std::vector<float> part =
        spec.experts > 0 ? read_f32_part(c, at.weight, spec.expert) : read_f32(c, at.weight);
    return gather_rows(spec, part.data());
}

std::vector<float> read_bias(const Checkpoint& c, const LinearSpec& spec) {
    if (in_parts(c, spec)) return join_biases(c, spec);
    // An EXL3 file keeps the biases of stacked experts with each of them.
    LinearSource at = source_of(c, spec);
    if (c.has((spec.key / "bias").str())) at = {at.weight, spec.key / "bias", false};
    const auto e = c.find(at.bias);
    if (!e.info) return {};
    const auto& dims = e.info->dims;
    const int64_t want = at.fused ? spec.fused_rows : spec.out;
    const bool stacked = at.fused && spec.experts > 0;
    // A converted file may hold the bias zero-padded to the padded width.
    const bool fits = stacked    ? dims == std::vector<int64_t>{spec.experts, want}
                      : at.fused ? dims == std::vector<int64_t>{want}
                                 : dims.size() == 1 && dims[0] >= want;
    if (!fits)
        refuse(c, at.bias,
               fmt::format("has shape {}, the model needs {}", to_string(dims),
                           stacked ? fmt::format("({}, {})", spec.experts, want)
                                   : fmt::format("({})", want)));
    const std::vector<float> b =
        stacked ? read_f32_part(c, at.bias, spec.expert) : read_f32(c, at.bias);
    std::vector<float> out(static_cast<size_t>(spec.out));
    for (size_t i = 0; i < out.size(); ++i)
        out[i] =
            at.fused
                ? b[static_cast<size_t>(spec.fused_row) + i * static_cast<size_t>(spec.fused_step)]
                : b[i];
    return out;
}

void undo_divisor(Exl3Matrix& m, const LinearSpec& spec) {
    if (spec.divisor == 1) return;
    for (f16& v : m.svh) {
        const float scaled = to_float(v) * spec.divisor;
        if (std::fabs(scaled) > 65504.0f)
            throw Error(Errc::unsupported, {{}, (spec.key / "svh").str(), {}},
                        fmt::format("found a scale of {}, needed at most 65504 / {}", to_float(v),
                                    spec.divisor));
        v = to_f16(scaled);
    }
}

std::unique_ptr<Linear> make_exl3_linear(Stream& s, const Exl3Matrix& m, int in, int out) {
    return std::make_unique<LinearExl3>(s, m, in, out);
}

Tensor load_tensor(Stream& s, const Checkpoint& c, std::string_view name,
                   const std::vector<int64_t>& shape) {
    const auto e = c.find(name);
    if (!e.info)
        throw Error(Errc::invalid_file, {c.folder().string(), std::string(name), {}}, "is missing");
    if (e.info->dims != shape)
        refuse(c, std::string(name),
               fmt::format("has shape {}, the model needs {}", to_string(e.info->dims),
                           to_string(shape)));
    Shape dims;
    for (const int64_t d : shape) dims.dim[static_cast<size_t>(dims.rank++)] = d;
    const DType dtype = e.info->dtype;
    if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) {
        Tensor t = s.device().make_tensor(dtype, dims);
        s.copy(dense(c.view(name).data, dtype, dims), t.view);
        return t;
    }
    const std::vector<float> values = read_f32(c, name);
    Tensor t = s.device().make_tensor(DType::f32, dims);
    s.copy(dense(values.data(), DType::f32, dims), t.view);
    return t;
}

std::unique_ptr<Linear> load_linear(Stream& s, const Checkpoint& c, const LinearSpec& spec) {
    if (is_exl3(c, spec.key)) return make_exl3_linear(s, read_exl3(c, spec), spec.in, spec.out);
    const LinearSource at = source_of(c, spec);
    const Shape shape = {spec.out, spec.in};
    Tensor weight, bias;
    if (in_parts(c, spec)) {
        weight = upload(s, join_weights(c, spec).data(), DType::f32, shape);
        if (const std::vector<float> b = join_biases(c, spec); !b.empty())
            bias = upload(s, b.data(), DType::f32, {spec.out});
        return std::make_unique<LinearDense>(std::move(weight), std::move(bias));
    }
    // A stacked tensor used whole is the embedding of a tied model.
    const bool whole =
        !at.fused || (spec.experts == 0 && spec.fused_row == 0 && spec.fused_rows == spec.out);
    const bool blocks = at.fused && spec.experts > 0 && is_mxfp4(c, at.weight);
    const DType dtype = blocks ? DType::u8 : find_weight(c, spec, at).dtype;
    if (whole) {
        weight = load_tensor(s, c, at.weight, {spec.out, spec.in});
    } else if (dtype == DType::f16 || dtype == DType::bf16) {
        weight = upload(s, gather_typed<uint16_t>(c, spec, *c.find(at.weight).info).data(), dtype,
                        shape);
    } else {
        weight = upload(s, read_dense_weight(c, spec).data(), DType::f32, shape);
    }
    if (const std::vector<float> b = read_bias(c, spec); !b.empty())
        bias = upload(s, b.data(), DType::f32, {spec.out});
    return std::make_unique<LinearDense>(std::move(weight), std::move(bias));
}

}  // namespace exl3
