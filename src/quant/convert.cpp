#include "quant/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "arch/arch.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "model/model.h"
#include "quant/allocate.h"
#include "quant/calibration.h"
#include "quant/hessian.h"
#include "quant/quantize_linear.h"
#include "quant/work_folder.h"
#include "quant/write_model.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A state is a few seconds of work to make again per layer but gigabytes for a large model, so it
// is written at most this often.
constexpr auto kStateInterval = std::chrono::seconds(60);

int64_t padded(int64_t n) {
    return (n + 127) / 128 * 128;
}

/// Sums up what each group of matrices sees.
class HessianTap final : public LinearTap {
public:
    void see(Stream& s, std::string_view tag, ConstView x) override {
        auto it = hessians_.find(tag);
        if (it == hessians_.end())
            it = hessians_.emplace(std::string(tag), Hessian(padded(x.shape[1]))).first;
        it->second.add(s, x);
    }
    /// The sum for a tag, given away.
    Hessian take(std::string_view tag) {
        const auto it = hessians_.find(tag);
        EXL3_CHECK(it != hessians_.end(), "no input was seen");
        Hessian h = std::move(it->second);
        hessians_.erase(it);
        return h;
    }

private:
    std::map<std::string, Hessian, std::less<>> hessians_;
};

class Conversion {
public:
    Conversion(Stream& s, const ConvertOptions& options)
        : s_(s), o_(options), source_(Checkpoint::open(options.source)), spec_(describe(source_)) {
        o_.cal_cols = std::min(o_.cal_cols, spec_.max_positions);
        for (const BlockSpec& block : spec_.blocks)
            if (const int source = cache_source(block); source >= 0) cache_sources_.insert(source);
        if (needs_embedded(spec_)) embedding_.emplace(s_, source_, spec_);
        refuse_bad_options();
        assign_bits();
        fs::path work = o_.work;
        if (work.empty()) (work = o_.output) += ".work";
        work_.emplace(work, job(), o_.restart);
        require_space(work);
    }

    ConvertReport run() {
        const auto start = Clock::now();
        make_rows();
        const int layers = static_cast<int>(spec_.blocks.size());
        int done = 0;
        while (done < layers && work_->has(part(done))) ++done;
        report_.resumed_layers = done;
        const bool head_done = work_->has("head");
        if (done < layers || !head_done) {
            restore_state(done);
            for (int i = done; i < layers; ++i) quantize_block(i);
            quantize_head();
        }
        tell("writing the model", layers + 1);
        finish();
        report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        return report_;
    }

private:
    static std::string part(int layer) { return fmt::format("block-{:04}", layer); }

    void refuse_bad_options() const {
        const auto bad = [](const std::string& what) {
            throw Error(Errc::invalid_argument, {}, what);
        };
        if (!(o_.bits >= 1 && o_.bits <= 8))
            bad(fmt::format("-b: found {}, needed 1 to 8 bits", o_.bits));
        if (o_.head_bits < 1 || o_.head_bits > 8)
            bad(fmt::format("--head-bits: found {}, needed 1 to 8", o_.head_bits));
        if (o_.cal_rows < 1 || o_.cal_cols < 2)
            bad(fmt::format("calibration of {} rows of {} tokens: needed at least 1 of 2",
                            o_.cal_rows, o_.cal_cols));
        if (fs::exists(o_.output))
            throw Error(Errc::invalid_argument, {o_.output.string(), {}, {}},
                        "exists already; name another output or remove it");
        for (const BlockSpec& block : spec_.blocks)
            for (const LinearSpec& l : linears_of(block, spec_.hidden))
                if (is_exl3(source_, l.key))
                    throw Error(Errc::unsupported, source_.where((l.key / "trellis").str()),
                                "the source is EXL3 already; convert from its original");
    }

    void assign_bits() {
        std::vector<BitCandidate> all;
        for (size_t i = 0; i < spec_.blocks.size(); ++i)
            for (const LinearSpec& l : linears_of(spec_.blocks[i], spec_.hidden))
                all.push_back({l, static_cast<int>(i)});
        all.push_back({spec_.head, 0});
        const auto bits = allocate_bits(all, {.bits = o_.bits,
                                              .head_bits = o_.head_bits,
                                              .layers = static_cast<int>(spec_.blocks.size()),
                                              .max_extra = o_.hq ? 1 : 0});
        for (size_t i = 0; i < all.size(); ++i) {
            bits_[all[i].spec.key.str()] = bits[i];
            weights_ += padded_numel(all[i].spec) * bits[i] / 8;
        }
        report_.bpw_layers = average_bits(all, bits);
        report_.bpw_head = o_.head_bits;
    }

    // What a work folder belongs to: everything that changes the result.
    Json job() const {
        Json files = Json::array();
        for (const fs::path& f : o_.cal_files) files.push_back(fs::absolute(f).string());
        return {{"format", 1},
                {"source", fs::weakly_canonical(o_.source).string()},
                {"source_bytes", source_.total_bytes()},
                {"bits", o_.bits},
                {"head_bits", o_.head_bits},
                {"codebook", std::string(name_of(o_.codebook.kind))},
                {"cal_rows", o_.cal_rows},
                {"cal_cols", o_.cal_cols},
                {"cal_files", files},
                {"hq", o_.hq},
                {"plain", o_.plain},
                {"seed", o_.seed}};
    }

    // The matrices are written twice (work folder and result), the rest once.
    void require_space(const fs::path& work) const {
        std::error_code error;
        const auto space = fs::space(work, error);
        const uint64_t need = 2 * static_cast<uint64_t>(weights_) + (uint64_t{64} << 20);
        if (!error && space.available < need)
            throw Error(Errc::io, {work.string(), {}, {}},
                        fmt::format("found {} MB free, needed about {} MB", space.available >> 20,
                                    need >> 20));
    }

    void make_rows() {
        const bool has_tokenizer =
            fs::exists(o_.source / "tokenizer.json") || fs::exists(o_.source / "tokenizer.model");
        if (has_tokenizer) {
            const Tokenizer tokenizer = Tokenizer::load(o_.source);
            rows_ = calibration_rows(
                tokenizer,
                {.rows = o_.cal_rows, .cols = o_.cal_cols, .files = o_.cal_files, .seed = o_.seed});
        } else {
            log(LogLevel::warn, "{}: no tokenizer; calibrating on random token ids",
                o_.source.string());
            rows_ = random_rows(spec_.vocab, o_.cal_rows, o_.cal_cols, o_.seed);
        }
        // A tokenizer may know ids that the embedding does not have.
        for (auto& row : rows_)
            for (int32_t& id : row) id = std::min(id, spec_.vocab - 1);
    }

    size_t row_numel() const {
        return static_cast<size_t>(o_.cal_cols) * static_cast<size_t>(spec_.hidden);
    }
    View row_state(size_t r) {
        return dense(state_.data() + r * row_numel(), DType::f32, {o_.cal_cols, spec_.hidden});
    }

    // The hidden states that enter block `next`: the last saved ones, moved on through the blocks
    // that were finished after them.
    void restore_state(int next) {
        int at = 0;
        auto saved = work_->load_state(next, rows_.size() * row_numel());
        // Layers that read the cache of an earlier one need that layer to have run.
        if (saved && std::none_of(cache_sources_.begin(), cache_sources_.end(),
                                  [&](int layer) { return layer < saved->first; })) {
            at = saved->first;
            state_ = std::move(saved->second);
        } else {
            embed_rows();
        }
        for (; at < next; ++at) {
            tell(fmt::format("layer {}: replaying", at), at);
            Block block(s_, source_, spec_.blocks[static_cast<size_t>(at)], spec_.hidden, at);
            replace(block, work_->load(part(at)));
            forward_rows(block, at, nullptr);
        }
        last_save_ = Clock::now();
    }

    void embed_rows() {
        state_.resize(rows_.size() * row_numel());
        const Embedding embedding(s_, source_, spec_);
        for (size_t r = 0; r < rows_.size(); ++r) {
            const auto scope = s_.workspace().scope();
            const View ids = s_.workspace().take(DType::i32, {o_.cal_cols});
            s_.copy(dense(rows_[r].data(), DType::i32, {o_.cal_cols}), ids);
            const View x = s_.workspace().take(DType::f32, {o_.cal_cols, spec_.hidden});
            embedding.forward(s_, ids, x);
            s_.copy(x, row_state(r));
        }
        s_.synchronize();
    }

    // The layer whose cached keys and values a block reads instead of its own; -1: its own.
    static int cache_source(const BlockSpec& block) {
        const auto* a = std::get_if<AttentionSpec>(&block.mixer);
        return a ? a->kv_layer : -1;
    }

    // The cache a block works on. That of a layer which later ones read holds all rows and is kept;
    // it is the one of its last pass, through the quantized block.
    const PagedCache& cache_for(int layer, const LinearTap* tap) {
        const int source = cache_source(spec_.blocks[static_cast<size_t>(layer)]);
        if (source >= 0) return *kept_caches_.at(source);
        const int pages = pages_for(o_.cal_cols);
        const KvLayout layout = kv_layout(spec_).only(layer);
        if (!tap && cache_sources_.contains(layer)) {
            auto& kept = kept_caches_[layer];
            kept = std::make_unique<PagedCache>(s_.device(), layout,
                                                pages * static_cast<int>(rows_.size()));
            return *kept;
        }
        scratch_cache_ = std::make_unique<PagedCache>(s_.device(), layout, pages);
        return *scratch_cache_;
    }

    // Runs every row through a block. With a tap the states are left as they are.
    void forward_rows(const Block& block, int layer, LinearTap* tap) {
        const int64_t cols = o_.cal_cols;
        const PagedCache& cache = cache_for(layer, tap);
        // Rows have pages of their own where later layers will read them.
        const bool kept = cache.pages() > pages_for(cols);
        // Every row starts at its first token, so it finds zeros in the one slot there is.
        const StateCache states(s_.device(), state_layout(spec_).only(layer), 1);
        const int32_t slot = 0;
        std::vector<int32_t> positions(static_cast<size_t>(cols)),
            pages(static_cast<size_t>(pages_for(cols)));
        std::iota(positions.begin(), positions.end(), 0);
        std::iota(pages.begin(), pages.end(), 0);
        const int32_t q_start[2] = {0, static_cast<int32_t>(cols)};
        const int32_t kv_len = static_cast<int32_t>(cols);
        for (size_t r = 0; r < rows_.size(); ++r) {
            stop_if_asked();
            const auto scope = s_.workspace().scope();
            if (kept) std::iota(pages.begin(), pages.end(), static_cast<int32_t>(r * pages.size()));
            const auto upload = [&](const int32_t* data, Shape shape) {
                const View v = s_.workspace().take(DType::i32, shape);
                s_.copy(dense(data, DType::i32, shape), v);
                return v;
            };
            const View ids = upload(rows_[r].data(), {cols});
            Batch batch{
                .tokens = ids,
                .positions = upload(positions.data(), {cols}),
                .seq = {.q_start = upload(q_start, {2}),
                        .kv_len = upload(&kv_len, {1}),
                        .pages = upload(pages.data(), {1, static_cast<int64_t>(pages.size())})},
                .cache = &cache,
                .slots = upload(&slot, {1}),
                .states = &states,
                .rope_length = cols,
                .tap = tap};
            const View x = s_.workspace().take(DType::f32, {cols, spec_.hidden});
            if (embedding_) {
                const View embedded = s_.workspace().take(DType::f32, x.shape);
                embedding_->forward(s_, ids, embedded);
                batch.embedded = embedded;
            }
            s_.copy(row_state(r), x);
            block.forward(s_, batch, x);
            if (!tap) s_.copy(x, row_state(r));
            s_.synchronize();
        }
    }

    void quantize_block(int i) {
        tell(fmt::format("layer {}: measuring", i), i);
        const BlockSpec& spec = spec_.blocks[static_cast<size_t>(i)];
        Block block(s_, source_, spec, spec_.hidden, i);
        HessianTap tap;
        forward_rows(block, i, &tap);
        tell(fmt::format("layer {}: quantizing", i), i);
        std::vector<QuantizedTensor> done = quantize_all(linears_of(spec, spec_.hidden), tap);
        work_->save(part(i), done);
        replace(block, done);
        tell(fmt::format("layer {}: continuing through the quantized layer", i), i);
        forward_rows(block, i, nullptr);
        if (Clock::now() - last_save_ > kStateInterval) {
            work_->save_state(i + 1, state_);
            last_save_ = Clock::now();
        }
    }

    void quantize_head() {
        if (work_->has("head")) return;
        tell("head: measuring", static_cast<int>(spec_.blocks.size()));
        const Norm norm(s_, source_, spec_.final_norm, spec_.hidden);
        HessianTap tap;
        for (size_t r = 0; r < rows_.size(); ++r) {
            stop_if_asked();
            const auto scope = s_.workspace().scope();
            const View x = s_.workspace().take(DType::f32, {o_.cal_cols, spec_.hidden});
            s_.copy(row_state(r), x);
            norm.forward(s_, x, x);
            tap.see(s_, spec_.head.tag, x);
        }
        tell("head: quantizing", static_cast<int>(spec_.blocks.size()));
        work_->save("head", quantize_all({resolve_head(source_, spec_)}, tap));
    }

    // Matrices that follow each other with one tag share their factorized Hessian.
    std::vector<QuantizedTensor> quantize_all(const std::vector<LinearSpec>& linears,
                                              HessianTap& tap) {
        std::vector<QuantizedTensor> out;
        std::string tag;
        std::optional<FinalHessian> hessian;
        for (const LinearSpec& l : linears) {
            stop_if_asked();
            // What counts here is the model's output, to which small channels matter as large ones
            // do: an equal share of error gives 3 % less KL divergence than the least error.
            QuantParams params{.name = l.key.str(),
                               .bits = bits_.at(l.key.str()),
                               .codebook = o_.codebook,
                               .plain = o_.plain,
                               .column_power = 1};
            params.seed = noise64(o_.seed, fnv1a64(l.tag));
            if (tag != l.tag) {
                tag = l.tag;
                hessian.emplace(finalize(tap.take(tag)));
            }
            out.push_back(quantize_one(l, *hessian, params));
        }
        return out;
    }

    QuantizedTensor quantize_one(const LinearSpec& l, const FinalHessian& hessian,
                                 const QuantParams& params) {
        const int64_t k = padded(l.in), n = padded(l.out);
        std::vector<float> w(static_cast<size_t>(k * n));
        {
            const std::vector<float> source = read_dense_weight(source_, l);
            for (int64_t j = 0; j < l.out; ++j)
                for (int64_t i = 0; i < l.in; ++i) {
                    const float v = source[static_cast<size_t>(j * l.in + i)];
                    if (!std::isfinite(v))
                        throw Error(Errc::invalid_file, source_.where((l.key / "weight").str()),
                                    fmt::format("element ({}, {}) is not finite", j, i));
                    w[static_cast<size_t>(i * n + j)] = v / l.divisor;
                }
        }
        QuantResult r = quantize_linear(s_, dense(w.data(), DType::f32, {k, n}), &hessian, params);
        QuantizedTensor t{.key = l.key, .proxy_err = r.proxy_err};
        t.matrix = {.k = k,
                    .n = n,
                    .bits = params.bits,
                    .codebook = params.codebook,
                    .trellis = std::move(r.trellis),
                    .suh = std::move(r.suh),
                    .svh = std::move(r.svh)};
        // The file holds f16, so the rest of the conversion sees f16 too.
        for (const float b : read_bias(source_, l)) t.matrix.bias.push_back(to_float(to_f16(b)));
        if (!t.matrix.bias.empty()) t.matrix.bias.resize(static_cast<size_t>(n), 0.0f);
        return t;
    }

    void replace(Block& block, const std::vector<QuantizedTensor>& tensors) {
        std::map<std::string, const QuantizedTensor*> by_key;
        for (const QuantizedTensor& t : tensors) by_key[t.key.str()] = &t;
        block.each_linear([&](LinearSlot& slot) {
            const auto t = by_key.find(slot.spec.key.str());
            if (t == by_key.end()) return;
            Exl3Matrix m = t->second->matrix;
            undo_divisor(m, slot.spec);
            slot.linear = make_exl3_linear(s_, m, slot.spec.in, slot.spec.out);
        });
    }

    void finish() {
        std::vector<std::string> parts;
        for (size_t i = 0; i < spec_.blocks.size(); ++i) parts.push_back(part(static_cast<int>(i)));
        parts.emplace_back("head");
        for (const std::string& name : parts)
            for (const QuantizedTensor& t : work_->load(name))
                report_.tensors.push_back({t.key.str(), t.matrix.bits, t.proxy_err});
        report_.bytes = write_model(source_, spec_, *work_, parts,
                                    {.bits = report_.bpw_layers,
                                     .head_bits = o_.head_bits,
                                     .codebook = o_.codebook,
                                     .cal_rows = static_cast<int>(rows_.size()),
                                     .cal_cols = o_.cal_cols},
                                    o_.shard_mb, o_.output);
        std::error_code none;
        fs::remove_all(work_->folder(), none);
    }

    void tell(const std::string& what, int done) const {
        stop_if_asked();
        if (o_.progress) o_.progress(what, done, static_cast<int>(spec_.blocks.size()) + 1);
    }
    void stop_if_asked() const {
        if (o_.cancel && *o_.cancel)
            throw Error(Errc::cancelled, {}, "interrupted; the same command goes on from here");
    }

    Stream& s_;
    ConvertOptions o_;
    Checkpoint source_;
    ModelSpec spec_;
    std::map<std::string, int> bits_;
    int64_t weights_ = 0;  // bytes of all trellises
    std::optional<WorkFolder> work_;
    std::vector<std::vector<int32_t>> rows_;
    std::vector<float> state_;
    std::optional<Embedding> embedding_;  // where blocks read Batch::embedded
    std::set<int> cache_sources_;         // layers whose cache later layers read
    std::map<int, std::unique_ptr<PagedCache>> kept_caches_;
    std::unique_ptr<PagedCache> scratch_cache_;
    Clock::time_point last_save_ = Clock::now();
    ConvertReport report_;
};

}  // namespace

ConvertReport convert(Stream& s, const ConvertOptions& options) {
    return Conversion(s, options).run();
}

}  // namespace exl3
