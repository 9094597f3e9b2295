#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ops/activation.h"
#include "ops/moe.h"
#include "ops/rope.h"

namespace exl3 {

/// A dotted tensor-name prefix: Key("model.layers") / 3 / "mlp" is "model.layers.3.mlp".
class Key {
public:
    Key() = default;
    Key(std::string text) : text_(std::move(text)) {}  // NOLINT: keys are written as text
    Key(const char* text) : text_(text) {}             // NOLINT
    const std::string& str() const { return text_; }
    operator const std::string&() const { return text_; }  // NOLINT
    bool empty() const { return text_.empty(); }
    friend Key operator/(const Key& a, std::string_view b) {
        return a.empty() ? Key(std::string(b)) : Key(a.text_ + "." + std::string(b));
    }
    friend Key operator/(const Key& a, int i) { return a / std::to_string(i); }

private:
    std::string text_;
};

enum class RopeScaling : uint8_t { none, linear, dynamic, llama3, yarn, longrope, proportional };

/// How one kind of layer rotates its queries and keys; model/rope_table.h turns it into numbers.
struct RopeSpec {
    RopeStyle style = RopeStyle::neox;
    int dims = 0;  ///< rotated channels of each head, even
    double theta = 10000;
    RopeScaling scaling = RopeScaling::none;
    double factor = 1;
    double original_length = 0;  ///< original_max_position_embeddings, tokens; 0: not given
    double max_length = 0;       ///< max_position_embeddings, tokens
    double low_freq_factor = 1, high_freq_factor = 4;  ///< llama3
    double beta_fast = 32, beta_slow = 1;              ///< yarn
    bool truncate = true;                              ///< yarn
    std::vector<double> short_factor, long_factor;     ///< longrope, dims / 2 each
    double partial = 1;                                ///< proportional: share that rotates
    float attention_factor = 1;                        ///< multiplies cos and sin
    float query_scale_beta = 0;                        ///< Ministral 3; 0: off
};

/// What a norm over queries or keys takes the mean of.
enum class HeadNormSpan : uint8_t {
    head,        ///< each head by itself; one weight of head_dim for all
    all_heads,   ///< all heads of a token at once; a weight for every channel
    own_weight,  ///< each head by itself, with its own row of a (heads, head_dim) weight
    group,       ///< the same with a flat weight (heads * head_dim); for RMS norms
};

struct NormSpec {
    Key key;  ///< without ".weight"; empty: no weight
    float eps = 1e-6f;
    float weight_bias = 0;                   ///< 1 where the checkpoint stores weight - 1 (Gemma)
    bool layer_norm = false;                 ///< subtracts the mean first (LayerNorm); else RMS
    HeadNormSpan span = HeadNormSpan::head;  ///< of a norm over queries or keys
};

/// A matrix of the model. Where EXL3 or plain tensors stand under `key` they are used; otherwise
/// `out` rows of the tensor under `fused`.
struct LinearSpec {
    Key key;
    int in = 0, out = 0;
    Key fused;  ///< a stacked source tensor (Phi-3 qkv_proj); empty: none
    int fused_row = 0;
    int fused_rows = 0;  ///< rows of the whole stacked tensor, of one expert if it holds several
    int fused_step = 1;  ///< rows from one row of this matrix to its next (gpt-oss: 2)
    int experts = 0;     ///< the stacked tensor holds that many matrices; 0: it is one matrix
    int expert = 0;      ///< which of them
    bool transposed = false;  ///< it is (in, out) instead of (out, in)
    bool bare = false;        ///< its tensors are `fused` and `fused_bias`, without a dot
    float divisor = 1;        ///< EXL3 files hold the matrix divided by this, a power of two
    struct Part {
        Key key;
        int rows = 0;
    };
    std::vector<Part> parts;  ///< a source holds these plain matrices instead, row after row
    std::string tag;          ///< linears of one tag read the same input, so they share a Hessian
    std::string group;        ///< linears of one group get the same bits per weight
    int priority = 0;         ///< groups of higher priority get spare bits first
    bool head = false;        ///< the output head has its own bits
};

struct AttentionSpec {
    Key key;
    int heads = 0, kv_heads = 0, head_dim = 0;
    float scale = 0;                         ///< multiplies q.k; 0: head_dim^-1/2
    float softcap = 0;                       ///< 0: off
    int window = 0;                          ///< keys a query sees, itself included; 0: all
    std::optional<RopeSpec> rope;            ///< none: no position encoding
    std::optional<NormSpec> q_norm, k_norm;  ///< over each head, before RoPE
    std::string fused_qkv;       ///< name of a stacked q, k, v tensor under `key`, if any
    std::string out = "o_proj";  ///< name of the output matrix under `key`
    /// q_proj has the query of a head, then a gate for each of its channels, head after head; the
    /// attention's output is multiplied by the gate's sigmoid (Qwen3-Next).
    bool interleaved_gate = false;
};

/// Gated delta net (arXiv 2412.06464); names are those of tensors under `key`.
struct DeltaNetSpec {
    Key key;
    int key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
    int kernel = 4;         ///< of the convolution, tokens
    float write_scale = 1;  ///< 2: the state may have negative eigenvalues (OLMo Hybrid)
    float eps = 1e-6f;      ///< of the output norm
    /// One matrix for q, k, v, z and one for b, a, both grouped by key head (Qwen3-Next). Empty:
    /// the four below.
    std::string qkvz, ba;
    std::string qkv = "in_proj_qkv", z = "in_proj_z", b = "in_proj_b", a = "in_proj_a";
    std::string conv = "conv1d", norm = "norm", out = "out_proj";
    /// Tensors that stand in for qkv and conv where those do not exist, row after row.
    std::vector<std::string> qkv_parts, conv_parts;
    bool qkv_split = false;  ///< qkv_parts are matrices of their own: q, k, v

    int keys() const { return key_heads * key_dim; }
    int values() const { return value_heads * value_dim; }
    int conv_channels() const { return 2 * keys() + values(); }
};

/// Mamba2 (arXiv 2405.21060) as Nemotron-H has it.
struct Mamba2Spec {
    Key key;
    int heads = 0, head_dim = 0;
    int groups = 0, state = 0;  ///< B and C are shared by heads / groups heads, `state` values each
    int kernel = 4;             ///< of the convolution, tokens
    float step_min = 0, step_max = 0;
    float eps = 1e-5f;  ///< of the output norm

    int inner() const { return heads * head_dim; }
    int conv_channels() const { return inner() + 2 * groups * state; }
};

/// The gated short convolution of LFM2.
struct ShortConvSpec {
    Key key;
    int kernel = 3;  ///< tokens
};

/// Names of the matrices of a feed-forward part.
struct MlpNames {
    std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
};

/// down(act(gate(x)) * up(x)).
struct GatedMlpSpec {
    Key key;
    int inner = 0;
    Act act = Act::silu;
    float limit = 0;  ///< of GatedActArgs; 0: none
    ActClamp clamp = ActClamp::before;
    MlpNames names{};
    std::string fused_gate_up;  ///< name of a stacked gate, up tensor under `key`, if any
    Key shared_input;           ///< tag of the enclosing part, where that shows the input to taps
};

/// down(act(up(x))).
struct PlainMlpSpec {
    Key key;
    int inner = 0;
    Act act = Act::relu2;
    MlpNames names{};
    Key shared_input;  ///< as in GatedMlpSpec
};

/// Chooses top_k of `experts` for every token; RouteArgs has the rules.
struct RouterSpec {
    Key key;  ///< the matrix (experts, hidden), never quantized; its bias, if any, is of the logits
    int experts = 0, top_k = 0;
    RouterScore score = RouterScore::softmax;
    /// Names a correction bias may have; the first that exists is added to the scores for choosing.
    std::vector<std::string> correction_bias;
    std::string expert_scale;  ///< tensor (experts) that multiplies the weights; empty: none
    bool normalise = true;
    float scale = 1;
    int groups = 1, groups_kept = 1;
};

/// How a source keeps all experts in one tensor. gate_up holds the rows of gate, then those of up;
/// gate and up are there instead where each has a tensor of its own.
struct ExpertStack {
    Key gate_up, gate, up, down;
    bool interleaved = false;  ///< rows of gate and up take turns (gpt-oss)
    bool transposed = false;   ///< (experts, in, out) instead of (experts, out, in)
    bool bare = true;          ///< LinearSpec::bare
};

/// Mixture of experts: the weighted sum of the chosen experts, plus a shared expert that every
/// token passes. Expert e has its matrices under experts / e.
struct MoeSpec {
    Key key;
    RouterSpec router;
    Key experts;
    int inner = 0;      ///< width of a routed expert
    bool gated = true;  ///< false: down(act(up(x)))
    Act act = Act::silu;
    float limit = 0;  ///< of GatedActArgs; 0: none
    ActClamp clamp = ActClamp::before;
    MlpNames names{};
    std::optional<ExpertStack> stack;
    float up_divisor = 1;  ///< LinearSpec::divisor of the routed up matrices
    std::variant<std::monostate, GatedMlpSpec, PlainMlpSpec> shared;
    Key shared_gate;  ///< (1, hidden): the shared expert is multiplied by its sigmoid; empty: none
    int latent = 0;   ///< routed experts work on this many channels; 0: on hidden
    Key latent_in, latent_out;  ///< the matrices to and from there
};

/// Either half of a block may be absent: std::monostate.
using MixerSpec =
    std::variant<std::monostate, AttentionSpec, DeltaNetSpec, Mamba2Spec, ShortConvSpec>;
using MlpSpec = std::variant<std::monostate, GatedMlpSpec, PlainMlpSpec, MoeSpec>;

/// x += mixer_post(mixer(mixer_norm(x))); x += mlp_post(mlp(mlp_norm(x))), each norm where it is.
/// A half whose spec is std::monostate does nothing and has no norms.
/// Parallel blocks feed both halves from one norm: y = mixer_norm(x); x += mixer(y) + mlp(y).
struct BlockSpec {
    Key key;  ///< of the layer: every tensor below it belongs to the block
    std::optional<NormSpec> mixer_norm;
    MixerSpec mixer;
    std::optional<NormSpec> mixer_post_norm;
    std::optional<NormSpec> mlp_norm;
    MlpSpec mlp;
    std::optional<NormSpec> mlp_post_norm;
    bool parallel = false;
};

struct ModelSpec {
    std::string architecture;  ///< as config.json names it
    int hidden = 0;
    int vocab = 0;          ///< rows of the embedding; logits beyond it do not exist
    int max_positions = 0;  ///< tokens the model was made for
    Key embed_key;
    float embed_scale = 1;
    std::vector<BlockSpec> blocks;
    NormSpec final_norm;
    LinearSpec head;
    bool tied_head = false;   ///< without head tensors the embedding is the head
    float logit_scale = 1;    ///< multiplies the logits, after the cap
    float logit_softcap = 0;  ///< 0: off
};

/// The matrices of a part in quantization order, with their sharing and bit groups.
inline std::vector<LinearSpec> linears_of(std::monostate, int) {
    return {};
}
std::vector<LinearSpec> linears_of(const AttentionSpec& a, int hidden);
std::vector<LinearSpec> linears_of(const DeltaNetSpec& d, int hidden);
std::vector<LinearSpec> linears_of(const Mamba2Spec& m, int hidden);
std::vector<LinearSpec> linears_of(const ShortConvSpec& m, int hidden);
std::vector<LinearSpec> linears_of(const GatedMlpSpec& m, int hidden);
std::vector<LinearSpec> linears_of(const PlainMlpSpec& m, int hidden);
std::vector<LinearSpec> linears_of(const MoeSpec& m, int hidden);
std::vector<LinearSpec> linears_of(const BlockSpec& block, int hidden);

}  // namespace exl3
