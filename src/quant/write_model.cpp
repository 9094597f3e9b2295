#include "quant/write_model.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <set>

#include "base/log.h"
#include "io/convert.h"
#include "io/mapped_file.h"
#include "io/output_folder.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersion = "1.4.1";  // of the format's writer that this output matches

// One tensor of the output with whatever keeps its bytes alive.
struct OutTensor {
    TensorToWrite tensor;
    std::shared_ptr<const void> owner;
    Key leaf;  // the module it belongs to, for quantization_config.json
    size_t bytes() const {
        size_t n = size_of(tensor.dtype);
        for (const int64_t d : tensor.dims) n *= static_cast<size_t>(d);
        return n;
    }
};
using Module = std::vector<OutTensor>;  // never split over shards

Key leaf_of(const std::string& name) {
    return name.substr(0, name.rfind('.'));
}

template <typename T>
OutTensor own(std::string name, DType dtype, std::vector<int64_t> dims, std::vector<T> data) {
    auto held = std::make_shared<const std::vector<T>>(std::move(data));
    return {{name, dtype, std::move(dims), held->data()}, held, leaf_of(name)};
}

void add_matrix(Module& module, QuantizedTensor t) {
    const Exl3Matrix& m = t.matrix;
    const auto name = [&](std::string_view suffix) { return (t.key / suffix).str(); };
    if (m.codebook.kind != CodebookKind::three_inst)
        module.push_back(own(name(name_of(m.codebook.kind)), DType::i32, {},
                             std::vector<uint32_t>{m.codebook.multiplier}));
    module.push_back(own(name("suh"), DType::f16, {m.k}, m.suh));
    module.push_back(own(name("svh"), DType::f16, {m.n}, m.svh));
    if (!m.bias.empty()) {
        std::vector<f16> bias;
        for (const float b : m.bias) bias.push_back(to_f16(b));
        module.push_back(own(name("bias"), DType::f16, {m.n}, std::move(bias)));
    }
    module.push_back(own(name("trellis"), DType::i16,
                         {m.k / kTile, m.n / kTile, tile_words(m.bits)}, t.matrix.trellis));
}

// A tensor that stays as it is. f32 weights and biases become f16 where every value survives:
// readers of the format expect half precision for norms and embeddings. Decays, step sizes and
// correction biases, which have names of their own, are few and keep their precision.
OutTensor keep(const Checkpoint& source, const std::string& name) {
    const auto entry = source.find(name);
    const bool weight = name.ends_with(".weight") || name.ends_with(".bias");
    if (entry.info->dtype == DType::f32 && weight) {
        const std::vector<float> values = read_f32(source, name);
        std::vector<f16> half;
        bool fits = true;
        for (const float v : values) {
            half.push_back(to_f16(v));
            fits = fits && (std::fabs(v) <= 65504.0f);
        }
        if (fits) return own(name, DType::f16, entry.info->dims, std::move(half));
        log(LogLevel::warn, "{}: tensor '{}' exceeds the range of f16 and stays f32",
            entry.file->path(), name);
    }
    return {{name, entry.info->dtype, entry.info->dims, source.view(name).data},
            entry.file->mapping(),
            leaf_of(name)};
}

// Source tensors that quantized matrices replace, companions of other formats included.
std::set<std::string> replaced_by(const ModelSpec& spec) {
    std::set<std::string> names;
    const auto add = [&](const Key& key) {
        for (const char* suffix :
             {"weight", "bias", "weight_scale", "weight_scale_inv", "input_scale"})
            names.insert((key / suffix).str());
    };
    // Stacked tensors without a dot before "weight", with the same companions.
    const auto add_bare = [&](const Key& key) {
        for (const char* suffix :
             {"", "_bias", "_scale", "_scale_inv", "_input_scale", "_blocks", "_scales"})
            names.insert(key.str() + suffix);
    };
    for (const BlockSpec& block : spec.blocks)
        for (const LinearSpec& l : linears_of(block, spec.hidden)) {
            add(l.key);
            if (!l.fused.empty()) l.bare ? add_bare(l.fused) : add(l.fused);
            for (const auto& part : l.parts) add(part.key);
        }
    add(spec.head.key);
    // A tied model keeps its embedding beside the new head.
    names.erase((spec.embed_key / "weight").str());
    return names;
}

std::vector<Module> collect(const Checkpoint& source, const ModelSpec& spec, const WorkFolder& work,
                            const std::vector<std::string>& parts) {
    std::set<std::string> done = replaced_by(spec);
    const auto take = [&](Module& module, const std::string& name) {
        if (source.has(name) && done.insert(name).second) module.push_back(keep(source, name));
    };
    const auto take_below = [&](Module& module, const Key& key) {
        const std::string prefix = key.str() + ".";
        for (auto it = source.tensors().lower_bound(prefix);
             it != source.tensors().end() && it->first.starts_with(prefix); ++it)
            take(module, it->first);
    };
    std::vector<Module> modules(1);
    take(modules.back(), (spec.embed_key / "weight").str());
    for (size_t i = 0; i < parts.size(); ++i) {
        Module& module = modules.emplace_back();
        if (i < spec.blocks.size()) {
            take_below(module, spec.blocks[i].key);
        } else {
            take(module, (spec.final_norm.key / "weight").str());
            modules.emplace_back();
        }
        for (QuantizedTensor& t : work.load_finished(parts[i]))
            add_matrix(modules.back(), std::move(t));
    }
    Module& rest = modules.emplace_back();
    for (const auto& [name, entry] : source.tensors()) take(rest, name);
    return modules;
}

Json quantization_block(const Checkpoint& source, const ModelMeta& meta) {
    Json q = {{"quant_method", "exl3"},
              {"version", std::string(kVersion)},
              {"bits", std::round(meta.bits * 100) / 100},
              {"head_bits", meta.head_bits},
              {"calibration", {{"rows", meta.cal_rows}, {"cols", meta.cal_cols}}},
              {"out_scales", "always"},
              {"codebook", std::string(name_of(meta.codebook.kind))}};
    const Json& config = source.config().json();
    if (config.contains("quantization_config"))
        q["original_quantization_config"] = config.at("quantization_config");
    return q;
}

std::string_view torch_name(DType t) {
    switch (t) {
        case DType::f32: return "torch.float32";
        case DType::f16: return "torch.float16";
        case DType::bf16: return "torch.bfloat16";
        case DType::i16: return "torch.int16";
        case DType::i32: return "torch.int32";
        case DType::i64: return "torch.int64";
        case DType::u8: return "torch.uint8";
        case DType::i8: return "torch.int8";
        default: return name_of(t);
    }
}

Json tensor_storage(const std::vector<Module>& modules, Codebook codebook) {
    Json storage = Json::object();
    for (const Module& module : modules)
        for (const OutTensor& t : module) {
            Json& leaf = storage[t.leaf.str()];
            leaf["stored_tensors"][t.tensor.name] = {
                {"shape", t.tensor.dims},
                {"n_bytes", t.bytes()},
                {"dtype", std::string(torch_name(t.tensor.dtype))}};
            if (!t.tensor.name.ends_with(".trellis")) continue;
            leaf["quant_format"] = "exl3";
            leaf["bits_per_weight"] = t.tensor.dims[2] / 16;
            if (codebook.kind != CodebookKind::three_inst)
                leaf[std::string(name_of(codebook.kind)) + "_multiplier"] = codebook.multiplier;
        }
    return storage;
}

std::vector<std::vector<const OutTensor*>> pack_shards(const std::vector<Module>& modules,
                                                       int64_t shard_mb) {
    std::vector<std::vector<const OutTensor*>> shards(1);
    uint64_t used = 0;
    for (const Module& module : modules) {
        uint64_t need = 0;
        for (const OutTensor& t : module) need += t.bytes();
        if (shard_mb > 0 && used > 0 && used + need > static_cast<uint64_t>(shard_mb) << 20) {
            shards.emplace_back();
            used = 0;
        }
        for (const OutTensor& t : module) shards.back().push_back(&t);
        used += need;
    }
    return shards;
}

uint64_t write_shards(const std::vector<std::vector<const OutTensor*>>& shards,
                      const fs::path& folder) {
    uint64_t total = 0, on_disk = 0;
    Json map = Json::object();
    for (size_t i = 0; i < shards.size(); ++i) {
        const std::string name =
            shards.size() == 1
                ? "model.safetensors"
                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
        std::vector<TensorToWrite> tensors;
        for (const OutTensor* t : shards[i]) {
            tensors.push_back(t->tensor);
            map[t->tensor.name] = name;
            total += t->bytes();
        }
        write_safetensors(folder / name, tensors);
        on_disk += fs::file_size(folder / name);
    }
    if (shards.size() > 1) {
        const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
        write_file(folder / "model.safetensors.index.json", index.dump(4) + "\n");
    }
    return on_disk;
}

}  // namespace

void copy_side_files(const fs::path& source, const fs::path& output) {
    static const std::set<std::string> kSkip = {"config.json", "model.safetensors.index.json",
                                                "quantization_config.json"};
    static const std::set<std::string> kWeights = {".bin", ".ckpt", ".pth", ".pt"};
    for (const auto& entry : fs::directory_iterator(source)) {
        const fs::path& p = entry.path();
        if (!entry.is_regular_file() || p.extension() == ".safetensors" ||
            kSkip.contains(p.filename().string()))
            continue;
        if (kWeights.contains(p.extension().string())) {
            log(LogLevel::warn, "{}: not copied, weights of another format", p.string());
            continue;
        }
        fs::copy_file(p, output / p.filename(), fs::copy_options::overwrite_existing);
    }
}

uint64_t write_model(const Checkpoint& source, const ModelSpec& spec, const WorkFolder& work,
                     const std::vector<std::string>& parts, const ModelMeta& meta, int64_t shard_mb,
                     const fs::path& output) {
    OutputFolder folder(output);
    const fs::path& partial = folder.path();
    try {
        const std::vector<Module> modules = collect(source, spec, work, parts);
        const uint64_t bytes = write_shards(pack_shards(modules, shard_mb), partial);
        Json config = source.config().json();
        Json block = quantization_block(source, meta);
        config["quantization_config"] = block;
        write_file(partial / "config.json", config.dump(4) + "\n");
        block["tensor_storage"] = tensor_storage(modules, meta.codebook);
        write_file(partial / "quantization_config.json", block.dump(4) + "\n");
        copy_side_files(source.folder(), partial);
        folder.commit();
        return bytes;
    } catch (const fs::filesystem_error& e) {
        throw Error(Errc::io, {output.string(), {}, {}}, e.code().message());
    }
}

}  // namespace exl3
