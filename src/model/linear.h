#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/device.h"
#include "io/checkpoint.h"
#include "model/spec.h"
#include "trellis/codebook.h"

namespace exl3 {

struct LinearInfo {
    int in = 0, out = 0;
    double bits_per_weight = 0;  ///< of the stored matrix, scales left out
    uint64_t bytes = 0;          ///< device memory
};

/// What a matrix is made of, for ops that run many of them at once. Valid as long as the Linear.
struct LinearParts {
    int bits = 0;         ///< 0: a plain matrix
    Codebook codebook{};  ///< EXL3 only
    ConstView weight;     ///< plain (out, in), or packed (k/16, n/16, 16*bits)
    ConstView suh, svh;   ///< EXL3 only
    ConstView bias;       ///< f32, or empty
};

/// y = x W + b, however W is stored.
struct Linear {
    virtual ~Linear() = default;
    /// @param x  (rows, in) f32  @param y  (rows, out) f32, must not alias x
    virtual void forward(Stream& s, ConstView x, View y) const = 0;
    virtual LinearInfo info() const = 0;
    virtual LinearParts parts() const = 0;
};

/// An EXL3 matrix in host memory, as docs/format.md describes it. k and n are multiples of 128.
struct Exl3Matrix {
    int64_t k = 0, n = 0;
    int bits = 0;
    Codebook codebook{};
    std::vector<uint16_t> trellis;  ///< (k/16, n/16, 16 * bits)
    std::vector<f16> suh, svh;      ///< (k), (n)
    std::vector<float> bias;        ///< (n) or empty
};

/// True if `key` stands in the checkpoint as an EXL3 matrix (trellis and both scales).
bool is_exl3(const Checkpoint& c, const Key& key);

/// Reads and checks an EXL3 matrix: dtypes, shapes against spec.in and spec.out (padded to 128 or
/// more), one codebook, finite scales; legacy packed signs are expanded.
/// Throws Error{invalid_file} naming file and tensor.
Exl3Matrix read_exl3(const Checkpoint& c, const LinearSpec& spec);

/// The full weight that an EXL3 matrix stands for: diag(suh) H W H diag(svh), (k, n) f32.
std::vector<float> reconstruct(Stream& s, const Exl3Matrix& m);

/// A plain weight as f32 in Hugging Face orientation (out, in), fused sources sliced.
/// Throws Error{invalid_file} if it is missing or its shape is not (spec.out, spec.in).
std::vector<float> read_dense_weight(const Checkpoint& c, const LinearSpec& spec);
/// The bias of a linear as f32 (out), or empty if the checkpoint has none.
std::vector<float> read_bias(const Checkpoint& c, const LinearSpec& spec);

/// Names of the tensors that hold the weight and the bias of a matrix in a source that is not EXL3,
/// shared with other matrices where it is stacked.
struct LinearSource {
    std::string weight, bias;
    bool fused = false;
};
LinearSource source_of(const Checkpoint& c, const LinearSpec& spec);

/// Multiplies a matrix as read from a file by LinearSpec::divisor, exactly.
/// Throws Error{unsupported} if a scale leaves the range of f16.
void undo_divisor(Exl3Matrix& m, const LinearSpec& spec);

/// Puts an EXL3 matrix on a device. in and out are the true sizes, at most k and n.
std::unique_ptr<Linear> make_exl3_linear(Stream& s, const Exl3Matrix& m, int in, int out);

/// A tensor of n numbers, whatever its dimensions and float dtype, as f32 (n) on the device.
/// Throws Error{invalid_file} if it is missing or has another size.
Tensor load_f32_vector(Stream& s, const Checkpoint& c, const std::string& name, int64_t n);

/// Loads whatever stands under spec.key: EXL3, plain, or rows of a fused tensor. Plain weights keep
/// their dtype if it is f32, f16 or bf16.
std::unique_ptr<Linear> load_linear(Stream& s, const Checkpoint& c, const LinearSpec& spec);

/// A tensor copied to the device as it is (f32, f16, bf16; other float types become f32).
/// Throws Error{invalid_file} if the shape is not `shape`.
Tensor load_tensor(Stream& s, const Checkpoint& c, std::string_view name,
                   const std::vector<int64_t>& shape);

}  // namespace exl3
