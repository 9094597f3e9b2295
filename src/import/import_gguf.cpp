#include "import/import_gguf.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "arch/arch.h"
#include "import/gguf_tensors.h"
#include "import/gguf_tokenizer.h"
#include "io/output_folder.h"
#include "io/shards.h"
#include "text/tokenizer.h"

namespace exl3 {
namespace {

using Plan = std::vector<ImportedTensor>;

/// Compares the planned tensors with what the architecture will load.
class PlanCheck {
public:
    PlanCheck(const GgufModel& gguf, const Plan& plan, const Json& config) : gguf_(gguf) {
        for (const ImportedTensor& t : plan) by_name_.emplace(t.name, &t);
        // The config was made from the file's keys, so complaints about it name the GGUF file.
        spec_ = describe(HfConfig(config, gguf.path()),
                         [&](std::string_view name) { return by_name_.contains(name); });
    }

    void run() {
        need(spec_.embed_key / "weight", {spec_.vocab, spec_.hidden});
        norm(spec_.final_norm, spec_.hidden);
        if (!spec_.tied_head) linear(spec_.head);
        for (const BlockSpec& block : spec_.blocks) {
            for (const LinearSpec& l : linears_of(block, spec_.hidden)) linear(l);
            if (const auto* moe = std::get_if<MoeSpec>(&block.mlp))
                need(moe->router.key / "weight", {moe->router.experts, spec_.hidden});
            for (const auto& n :
                 {block.mixer_norm, block.mlp_norm, block.mixer_post_norm, block.mlp_post_norm})
                if (n) norm(*n, spec_.hidden);
            if (const auto* a = std::get_if<AttentionSpec>(&block.mixer))
                for (const auto& n : {a->q_norm, a->k_norm})
                    if (n) need(n->key / "weight", {});
        }
        for (const auto& [name, t] : by_name_)
            if (!used_.contains(name) && !name.ends_with(".bias"))
                throw Error(Errc::unsupported, gguf_.where(*t->source),
                            fmt::format("is no part of {}", spec_.architecture));
    }

private:
    void norm(const NormSpec& n, int64_t width) { need(n.key / "weight", {width}); }

    // A source that holds several matrices is checked by its width; its rows by the loader.
    void linear(const LinearSpec& l) {
        if (l.fused.empty() || l.head)
            need(l.key / "weight", {l.out, l.in}), bias(l);
        else
            need(l.fused / "weight", {l.fused_rows, l.in});
    }

    void bias(const LinearSpec& l) {
        if (by_name_.contains((l.key / "bias").str())) need(l.key / "bias", {l.out});
    }

    void need(const Key& key, const std::vector<int64_t>& dims) {
        const auto it = by_name_.find(key.str());
        if (it == by_name_.end())
            throw Error(Errc::invalid_file, {gguf_.path(), {}, {}},
                        fmt::format("holds no tensor for '{}', which {} needs", key.str(),
                                    spec_.architecture));
        used_.insert(it->first);
        const ImportedTensor& t = *it->second;
        if (!dims.empty() && t.dims != dims)
            throw Error(Errc::invalid_file, gguf_.where(*t.source),
                        fmt::format("found the shape {} of '{}', needed {}", to_string(t.dims),
                                    t.name, to_string(dims)));
    }

    const GgufModel& gguf_;
    ModelSpec spec_;
    std::map<std::string, const ImportedTensor*, std::less<>> by_name_;
    std::set<std::string_view> used_;
};

// What other software should compute in: the type of most weights. Gemma's activations exceed f16,
// so its checkpoints say bf16 even where the weights are kept in f16.
std::string compute_dtype(const GgufFamily& family, const Plan& plan) {
    std::map<DType, int64_t> elements;
    for (const ImportedTensor& t : plan) elements[t.dtype] += t.numel();
    const auto most = std::max_element(elements.begin(), elements.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    if (most->first == DType::f32) return "float32";
    return most->first == DType::f16 && !family.norms_plus_one ? "float16" : "bfloat16";
}

uint64_t write_weights(ThreadPool& pool, const Plan& plan, const ImportOptions& o,
                       const std::filesystem::path& folder) {
    std::vector<TensorToMake> tensors;
    uint64_t total = 0, done = 0;
    const auto after_piece = [&](uint64_t bytes) {
        if (o.cancel && *o.cancel) throw Error(Errc::cancelled, {}, "interrupted");
        done += bytes;
        if (o.progress) o.progress(static_cast<int64_t>(done), static_cast<int64_t>(total));
    };
    for (const ImportedTensor& t : plan) {
        tensors.push_back({t.name, t.dtype, t.dims, [&](SafetensorsWriter& out) {
                               write_tensor(pool, t, out, after_piece);
                           }});
        total += tensors.back().bytes();
    }
    return write_shards(folder, tensors, o.shard_mb);
}

}  // namespace

ImportReport import_gguf(ThreadPool& pool, const ImportOptions& o) {
    EXL3_CHECK(!o.dtype || *o.dtype == DType::f16 || *o.dtype == DType::bf16 ||
               *o.dtype == DType::f32);
    const GgufModel gguf = GgufModel::open(o.source).value();
    const GgufFamily& family = family_of(gguf);
    Json config = rebuild_config(gguf, family);
    Plan plan = plan_tensors(gguf, family, config);
    PlanCheck(gguf, plan, config).run();
    for (ImportedTensor& t : plan) t.dtype = o.dtype ? *o.dtype : choose_dtype(pool, t);
    config["torch_dtype"] = compute_dtype(family, plan);
    const GgufTokenizer tokenizer = rebuild_tokenizer(gguf);

    OutputFolder folder(o.output);
    const std::filesystem::path& at = folder.path();
    write_file(at / "config.json", config.dump(2) + "\n");
    write_file(at / "generation_config.json", rebuild_generation_config(gguf).dump(2) + "\n");
    write_file(at / "tokenizer.json", tokenizer.tokenizer_json);
    write_file(at / "tokenizer_config.json", tokenizer.config.dump(2) + "\n");
    Tokenizer::load(at);  // whatever is wrong with it shows before the weights are written
    const uint64_t bytes = write_weights(pool, plan, o, at);
    folder.commit();
    return {config["architectures"][0].get<std::string>(), static_cast<int>(plan.size()), bytes};
}

}  // namespace exl3
