#include "quant/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "arch/arch.h"
#include "io/validate.h"
#include "model/model.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

constexpr std::string_view kTrellis = ".trellis";

// Everything before the last dot: the matrix that a tensor belongs to.
Key key_of(const std::string& name) {
    return name.substr(0, name.rfind('.'));
}

bool is_float(DType t) {
    return t == DType::f32 || t == DType::f16 || t == DType::bf16;
}

/// Whether a tensor's name ends like that of a part of an EXL3 matrix.
bool is_named_like_a_part(const std::string& name) {
    static const std::set<std::string, std::less<>> kParts = {"trellis", "suh", "svh", "su",
                                                              "sv",      "mcg", "mul1"};
    const size_t dot = name.rfind('.');
    return dot != std::string::npos && kParts.contains(std::string_view(name).substr(dot + 1));
}

bool is_exl3_part(const Checkpoint& c, const std::string& name) {
    return is_named_like_a_part(name) && is_exl3(c, key_of(name));
}

/// Stored bits and stored weights of a set of matrices.
struct Density {
    double bits = 0, weights = 0;
    void add(const Checkpoint& c, const LinearSpec& l) {
        const auto trellis = c.find((l.key / "trellis").str());
        auto plain = c.find(source_of(c, l).weight);
        if (!plain.info && !l.parts.empty()) plain = c.find((l.parts[0].key / "weight").str());
        const double numel = static_cast<double>(l.in) * l.out;
        if (trellis.info && trellis.info->dims.size() == 3) {
            bits += 8.0 * static_cast<double>(trellis.info->bytes);
            weights +=
                static_cast<double>(trellis.info->dims[0] * trellis.info->dims[1]) * kTileSize;
        } else if (plain.info) {
            bits += 8.0 * static_cast<double>(size_of(plain.info->dtype)) * numel;
            weights += numel;
        }
    }
    double per_weight() const { return weights > 0 ? bits / weights : 0; }
};

std::vector<LinearSpec> decoder_linears(const ModelSpec& spec) {
    std::vector<LinearSpec> all;
    for (const BlockSpec& block : spec.blocks)
        for (LinearSpec& l : linears_of(block, spec.hidden)) all.push_back(std::move(l));
    return all;
}

// Weights of the model: a matrix counts with its true size, whatever padding is stored.
int64_t count_weights(const Checkpoint& c, const CheckpointSummary& summary) {
    std::map<std::string, int64_t> true_size;
    if (summary.spec) {
        for (const LinearSpec& l : decoder_linears(*summary.spec))
            true_size[l.key] = int64_t{l.in} * l.out;
        const LinearSpec& head = summary.spec->head;
        true_size[head.key] = int64_t{head.in} * head.out;
    }
    int64_t n = 0;
    for (const auto& [name, entry] : c.tensors()) {
        if (name.ends_with(kTrellis) && entry.info->dims.size() == 3) {
            const auto known = true_size.find(key_of(name).str());
            n += known != true_size.end()
                     ? known->second
                     : entry.info->dims[0] * entry.info->dims[1] * int64_t{kTileSize};
        } else if (!is_exl3_part(c, name)) {
            n += entry.info->numel();
        }
    }
    return n;
}

// The widest rows that live at once in a pass of 512 tokens, f32: residual stream, its copy, the
// inputs and outputs of a block's matrices, and the logits of the last position.
uint64_t scratch_bytes(const ModelSpec& spec) {
    constexpr uint64_t kPass = 512;
    uint64_t widest = 0;
    for (const BlockSpec& block : spec.blocks) {
        uint64_t width = 0;
        for (const LinearSpec& l : linears_of(block, spec.hidden))
            width += static_cast<uint64_t>(l.out);
        widest = std::max(widest, width);
    }
    return 4 * (kPass * (widest + 3 * static_cast<uint64_t>(spec.hidden)) +
                static_cast<uint64_t>(spec.vocab));
}

std::vector<MemoryNeed> memory_needs(const CheckpointSummary& summary) {
    const ModelSpec& spec = *summary.spec;
    std::set<int64_t> lengths = {spec.max_positions};
    for (const int64_t n : {2048, 8192, 32768, 131072})
        if (n < spec.max_positions) lengths.insert(n);
    std::vector<MemoryNeed> needs;
    for (const int64_t n : lengths)
        needs.push_back({.context = n,
                         .weights = summary.bytes,
                         .cache = summary.bytes_per_token * static_cast<uint64_t>(kPageTokens) *
                                      static_cast<uint64_t>(pages_for(n)) +
                                  state_layout(spec).bytes_per_slot(),
                         .scratch = scratch_bytes(spec)});
    return needs;
}

std::vector<std::string> codebooks_of(const Checkpoint& c, int& matrices) {
    std::set<std::string> names;
    for (const auto& [name, entry] : c.tensors()) {
        if (!name.ends_with(kTrellis)) continue;
        ++matrices;
        const Key key = key_of(name);
        names.insert(c.has((key / "mcg").str())    ? "mcg"
                     : c.has((key / "mul1").str()) ? "mul1"
                                                   : "3inst");
    }
    return {names.begin(), names.end()};
}

/// Collects problems; one line each, no line twice.
class Problems {
public:
    template <typename Work>
    void attempt(Work&& work) {
        try {
            work();
        } catch (const Error& e) {
            if (e.code() == Errc::out_of_memory || e.code() == Errc::cancelled) throw;
            if (seen_.insert(e.what()).second) lines_.emplace_back(e.what());
        }
    }
    std::vector<std::string> lines() && { return std::move(lines_); }

private:
    std::set<std::string> seen_;
    std::vector<std::string> lines_;
};

// A matrix judged by itself: its own shape stands in for the sizes that the model would ask for.
void check_matrix(const Checkpoint& c, const std::string& trellis_name) {
    const auto& dims = c.find(trellis_name).info->dims;
    LinearSpec l{.key = key_of(trellis_name)};
    if (dims.size() == 3 && dims[0] < (1 << 24) && dims[1] < (1 << 24)) {
        l.in = static_cast<int>(dims[0] * kTile);
        l.out = static_cast<int>(dims[1] * kTile);
    }
    read_exl3(c, l);
}

// Loading ignores tensors that it does not know. Beside a matrix that is not harmless: a codebook
// marker with a damaged name makes it decode with another codebook and without a word.
void check_name(const Checkpoint& c, const std::string& name) {
    if (name.rfind('.') == std::string::npos) return;
    const bool part = is_named_like_a_part(name), matrix = is_exl3(c, key_of(name));
    if (part && !matrix)
        throw Error(Errc::invalid_file, c.where(name),
                    fmt::format("found no '{}', needed the matrix that this is a part of",
                                (key_of(name) / "trellis").str()));
    // "scale" was written before the first release and means nothing.
    if (matrix && !part && !name.ends_with(".bias") && !name.ends_with(".scale") &&
        !name.ends_with(".weight"))
        throw Error(Errc::invalid_file, c.where(name),
                    "found a tensor that is no part of the EXL3 matrix it stands beside");
}

// Builds the model part by part, which compares every tensor it needs with what is there.
void check_against_model(Stream& s, const Checkpoint& c, Problems& problems) {
    std::optional<ModelSpec> spec;
    problems.attempt([&] { spec = describe(c); });
    if (!spec) return;
    problems.attempt([&] { Embedding(s, c, *spec); });
    for (size_t i = 0; i < spec->blocks.size(); ++i)
        problems.attempt([&] { Block(s, c, spec->blocks[i], spec->hidden, static_cast<int>(i)); });
    problems.attempt([&] { Head(s, c, *spec); });
}

}  // namespace

CheckpointSummary summarize(const Checkpoint& c) {
    CheckpointSummary summary;
    try {
        summary.architecture = c.config().architecture();
        summary.spec = describe(c);
    } catch (const Error& e) {
        summary.why_not = e.what();
    }
    summary.codebooks = codebooks_of(c, summary.exl3_matrices);
    summary.bytes = c.total_bytes();
    summary.weights = count_weights(c, summary);
    if (summary.weights > 0)
        summary.bpw_file =
            8.0 * static_cast<double>(summary.bytes) / static_cast<double>(summary.weights);
    if (!summary.spec) return summary;
    Density decoder, head;
    for (const LinearSpec& l : decoder_linears(*summary.spec)) decoder.add(c, l);
    head.add(c, resolve_head(c, *summary.spec));
    summary.bpw_decoder = decoder.per_weight();
    summary.bpw_head = head.per_weight();
    summary.bytes_per_token = kv_layout(*summary.spec).bytes_per_token();
    summary.memory = memory_needs(summary);
    return summary;
}

std::vector<std::string> check_checkpoint(Stream& s, const Checkpoint& c) {
    Problems problems;
    for (const auto& [name, entry] : c.tensors()) {
        problems.attempt([&] { check_name(c, name); });
        if (name.ends_with(kTrellis)) problems.attempt([&] { check_matrix(c, name); });
        if (is_float(entry.info->dtype)) problems.attempt([&] { require_finite(c, name); });
    }
    check_against_model(s, c, problems);
    return std::move(problems).lines();
}

}  // namespace exl3
