#include "quant/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <regex>

#include "arch/arch.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "io/validate.h"
#include "model/model.h"
#include "quant/allocate.h"
#include "quant/calibration.h"
#include "quant/distill.h"
#include "quant/fisher.h"
#include "quant/hessian.h"
#include "quant/inspect.h"
#include "quant/quantize_linear.h"
#include "quant/row_states.h"
#include "quant/work_folder.h"
#include "quant/write_model.h"
#include "train/decoder.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A state is a few seconds of work to make again per layer but gigabytes for a large model, so it
// is written at most this often.
constexpr auto kStateInterval = std::chrono::seconds(60);

// Bits of the head that the budget counts where the caller names none.
constexpr int kDefaultHeadBits = 6;

// Weights of a model whose backward pass is still taken: it holds about three copies in f32. A
// limit of size, not of this machine's memory, so that a conversion can go on elsewhere.
constexpr double kMostTrained = 1e9;

// Text for the backward pass: short rows, because its attention grows with their square.
constexpr int kFisherRows = 48, kShortCols = 512;

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
    /// The sum for a tag, given away; nothing if its matrices never saw an input.
    Hessian take(std::string_view tag, int64_t k) {
        const auto it = hessians_.find(tag);
        // An expert that no token was sent to: it is rounded without a Hessian.
        if (it == hessians_.end()) return Hessian(k);
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
        refuse_bad_options();
        fs::path work = o_.work;
        if (work.empty()) (work = o_.output) += ".work";
        work_.emplace(work, job(), o_.restart);
        require_space(work);
    }

    ConvertReport run() {
        const auto start = Clock::now();
        scan_source();
        make_rows();
        measure_worth();
        assign_bits();
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
        distill_scales();
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
        if (o_.head_bits < 0 || o_.head_bits > 8)
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

    static std::string fisher_part(int layer) { return fmt::format("fisher-{:04}", layer); }

    // One backward pass of the source tells how the output hangs on each matrix.
    void measure_worth() {
        if (o_.plain || !o_.by_worth) return;
        if (const std::string why = train::why_not(spec_); !why.empty()) {
            log(LogLevel::info, "{}: no backward pass for {}; bits are given by position",
                o_.source.string(), why);
            return;
        }
        if (const double count = weight_count(); count > kMostTrained) {
            log(LogLevel::info,
                "{}: {:.1f} billion weights, too many for a backward pass (at most {:.0f}); bits "
                "are given by position",
                o_.source.string(), count / 1e9, kMostTrained / 1e9);
            return;
        }
        const auto layers = static_cast<int>(spec_.blocks.size());
        // The first block is measured last.
        if (!work_->has(fisher_part(0))) {
            tell("measuring what bits are worth", 0);
            FisherOptions f{.rows = token_rows(fisher_rows(), short_cols()), .seed = o_.seed};
            f.progress = [this](const std::string& what) { tell(what, 0); };
            measure_fisher(s_, source_, spec_, f, [&](int layer, std::vector<LinearFisher> found) {
                save_fisher(*work_, fisher_part(layer), found);
            });
        }
        for (int i = 0; i <= layers; ++i)
            for (const LinearFisher& f : load_fisher(*work_, fisher_part(i)))
                worth_[f.key.str()] = f.sensitivity;
    }

    double weight_count() const {
        double n = static_cast<double>(spec_.vocab) * spec_.hidden;
        for (const BlockSpec& block : spec_.blocks)
            for (const LinearSpec& l : linears_of(block, spec_.hidden))
                n += static_cast<double>(l.in) * l.out;
        return n;
    }

    int fisher_rows() const { return std::min(kFisherRows, o_.cal_rows); }
    int short_cols() const { return std::min(kShortCols, o_.cal_cols); }

    void assign_bits() {
        std::vector<BitCandidate> all, free;
        for (size_t i = 0; i < spec_.blocks.size(); ++i)
            for (const LinearSpec& l : linears_of(spec_.blocks[i], spec_.hidden))
                all.push_back({l, static_cast<int>(i), worth_of(l)});
        all.push_back({spec_.head, 0, worth_of(spec_.head)});
        for (const BitCandidate& c : all)
            if (!overridden(c.spec)) free.push_back(c);
        const int head_bits = o_.head_bits == 0 ? kDefaultHeadBits : o_.head_bits;
        const std::vector<int> given =
            worth_.empty()
                ? allocate_bits(free, {.bits = o_.bits,
                                       .head_bits = head_bits,
                                       .layers = static_cast<int>(spec_.blocks.size()),
                                       .max_extra = o_.hq ? 1 : 0})
                : allocate_by_worth(
                      free,
                      {.bits = o_.bits, .head_bits = head_bits, .head_trades = o_.head_bits == 0});
        std::vector<int> bits;
        for (size_t next = 0; const BitCandidate& c : all) {
            const std::optional<int> fixed = overridden(c.spec);
            bits.push_back(fixed ? *fixed : given[next++]);
            bits_[c.spec.key.str()] = bits.back();
        }
        report_.bpw_layers = average_bits(all, bits);
        report_.bpw_head = bits.back();
    }

    // 0 for a matrix that was not measured; worth_ stays empty where none was.
    double worth_of(const LinearSpec& l) const {
        const auto it = worth_.find(l.key.str());
        return it == worth_.end() ? 0 : it->second;
    }

    std::optional<int> overridden(const LinearSpec& l) const {
        std::optional<int> bits;
        for (const auto& [pattern, value] : o_.overrides)
            if (std::regex_search(l.key.str(), std::regex(pattern))) bits = value;
        return bits;
    }

    // What a work folder belongs to: everything that changes the result.
    Json job() const {
        Json files = Json::array();
        for (const fs::path& f : o_.cal_files) files.push_back(fs::absolute(f).string());
        Json overrides = Json::array();
        for (const auto& [pattern, bits] : o_.overrides) overrides.push_back({pattern, bits});
        return {{"format", 2},
                {"source", fs::weakly_canonical(o_.source).string()},
                {"source_bytes", source_.total_bytes()},
                {"bits", o_.bits},
                {"head_bits", o_.head_bits},
                {"codebook", std::string(name_of(o_.codebook.kind))},
                {"cal_rows", o_.cal_rows},
                {"cal_cols", o_.cal_cols},
                {"cal_files", files},
                {"hq", o_.hq},
                {"overrides", overrides},
                {"by_worth", o_.by_worth},
                {"two_sided", o_.two_sided},
                {"distill_steps", o_.distill_steps},
                {"plain", o_.plain},
                {"seed", o_.seed}};
    }

    // The matrices are written twice (work folder and result), the rest once.
    void require_space(const fs::path& work) const {
        std::error_code error;
        const auto space = fs::space(work, error);
        double weights = 0;  // bytes
        for (const BlockSpec& block : spec_.blocks)
            for (const LinearSpec& l : linears_of(block, spec_.hidden))
                weights += static_cast<double>(padded_numel(l)) * o_.bits / 8;
        weights += static_cast<double>(padded_numel(spec_.head)) * kDefaultHeadBits / 8;
        const uint64_t need = static_cast<uint64_t>(2 * weights) + (uint64_t{64} << 20);
        if (!error && space.available < need)
            throw Error(Errc::io, {work.string(), {}, {}},
                        fmt::format("found {} MB free, needed about {} MB", space.available >> 20,
                                    need >> 20));
    }

    // A damaged weight is found in minutes, not in the hour its layer's turn comes.
    void scan_source() {
        if (work_->has("scanned")) return;
        tell("reading the source once", 0);
        for (const auto& [name, entry] : source_.tensors()) {
            stop_if_asked();
            const DType d = entry.info->dtype;
            if (d == DType::f32 || d == DType::f16 || d == DType::bf16)
                require_finite(source_, name);
        }
        work_->save_tensors("scanned", {});
    }

    void make_rows() { states_.emplace(s_, source_, spec_, token_rows(o_.cal_rows, o_.cal_cols)); }

    std::vector<std::vector<int32_t>> token_rows(int count, int cols) {
        cols = std::min(cols, spec_.max_positions);
        std::vector<std::vector<int32_t>> rows;
        if (fs::exists(o_.source / "tokenizer.json") || fs::exists(o_.source / "tokenizer.model")) {
            const Tokenizer tokenizer = Tokenizer::load(o_.source);
            rows = calibration_rows(
                tokenizer, {.rows = count, .cols = cols, .files = o_.cal_files, .seed = o_.seed});
        } else {
            log(LogLevel::warn, "{}: no tokenizer; calibrating on random token ids",
                o_.source.string());
            rows = random_rows(spec_.vocab, count, cols, o_.seed);
        }
        // A tokenizer may know ids that the embedding does not have.
        for (auto& row : rows)
            for (int32_t& id : row) id = std::min(id, spec_.vocab - 1);
        return rows;
    }

    // The hidden states that enter block `next`: the last saved ones, moved on through the blocks
    // that were finished after them.
    void restore_state(int next) {
        int at = 0;
        // Layers that read the cache of an earlier one need that layer to have run.
        auto saved = work_->load_state(next, states_->numel());
        if (saved && !states_->reads_before(saved->first)) {
            at = saved->first;
            states_->values() = std::move(saved->second);
        } else {
            states_->embed();
        }
        for (; at < next; ++at) {
            tell(fmt::format("layer {}: replaying", at), at);
            Block block(s_, source_, spec_.blocks[static_cast<size_t>(at)], spec_.hidden, at);
            replace(block, work_->load(part(at)));
            forward_rows(block, at, nullptr);
        }
        last_save_ = Clock::now();
    }

    // Runs every row through a block. With a tap the states are left as they are.
    void forward_rows(const Block& block, int layer, LinearTap* tap) {
        states_->forward(block, layer, tap, [this] { stop_if_asked(); });
        if (!tap) refuse_lost_rows(layer);
    }

    // A row whose hidden states are not finite no longer tells anything: Hessians leave it out.
    // Many of them mean that the model itself fails.
    void refuse_lost_rows(int layer) {
        size_t lost = 0, first = 0;
        for (size_t r = states_->count(); r-- > 0;) {
            if (states_->finite(r)) continue;
            ++lost;
            first = r;
        }
        if (lost == 0) return;
        const std::string what = fmt::format(
            "{}: hidden states after this layer are not finite in {} of {} calibration rows, "
            "first in row {}",
            spec_.blocks[static_cast<size_t>(layer)].key.str(), lost, states_->count(), first);
        if (10 * lost > states_->count())
            throw Error(Errc::invalid_file, {o_.source.string(), {}, {}}, what);
        log(LogLevel::warn, "{}", what);
    }

    void quantize_block(int i) {
        tell(fmt::format("layer {}: measuring", i), i);
        const BlockSpec& spec = spec_.blocks[static_cast<size_t>(i)];
        Block block(s_, source_, spec, spec_.hidden, i);
        HessianTap tap;
        forward_rows(block, i, &tap);
        tell(fmt::format("layer {}: quantizing", i), i);
        std::vector<QuantizedTensor> done = quantize_all(linears_of(spec, spec_.hidden), tap, i);
        work_->save(part(i), done);
        replace(block, done);
        tell(fmt::format("layer {}: continuing through the quantized layer", i), i);
        forward_rows(block, i, nullptr);
        if (Clock::now() - last_save_ > kStateInterval) {
            work_->save_state(i + 1, states_->values());
            last_save_ = Clock::now();
        }
    }

    void quantize_head() {
        if (work_->has("head")) return;
        tell("head: measuring", static_cast<int>(spec_.blocks.size()));
        const Norm norm(s_, source_, spec_.final_norm, spec_.hidden);
        HessianTap tap;
        for (size_t r = 0; r < states_->count(); ++r) {
            stop_if_asked();
            const auto scope = s_.workspace().scope();
            const View x = s_.workspace().take(DType::f32, {o_.cal_cols, spec_.hidden});
            s_.copy(states_->row(r), x);
            norm.forward(s_, x, x);
            tap.see(s_, spec_.head.tag, x);
        }
        tell("head: quantizing", static_cast<int>(spec_.blocks.size()));
        work_->save("head", quantize_all({resolve_head(source_, spec_)}, tap,
                                         static_cast<int>(spec_.blocks.size())));
    }

    // The metrics of a block's outputs, where they were measured.
    std::map<std::string, FinalHessian> output_metrics(int layer) const {
        std::map<std::string, FinalHessian> metrics;
        if (!o_.two_sided || worth_.empty()) return metrics;
        for (LinearFisher& f : load_fisher(*work_, fisher_part(layer))) {
            if (f.output.empty()) continue;
            const std::string key = f.key;
            metrics[key] = output_metric(std::move(f), int64_t{fisher_rows()} * short_cols());
        }
        return metrics;
    }

    // Matrices that follow each other with one tag share their factorized Hessian.
    std::vector<QuantizedTensor> quantize_all(const std::vector<LinearSpec>& linears,
                                              HessianTap& tap, int layer) {
        const std::map<std::string, FinalHessian> outputs = output_metrics(layer);
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
            if (const auto it = outputs.find(l.key.str()); it != outputs.end())
                params.output = &it->second;
            if (tag != l.tag) {
                tag = l.tag;
                hessian.emplace(finalize(tap.take(tag, padded(l.in))));
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

    std::vector<std::string> parts() const {
        std::vector<std::string> all;
        for (size_t i = 0; i < spec_.blocks.size(); ++i) all.push_back(part(static_cast<int>(i)));
        all.emplace_back("head");
        return all;
    }

    // All scales at once against the source's own distribution; the result stands beside the parts.
    void distill_scales() {
        if (o_.plain || o_.distill_steps == 0 || worth_.empty() || work_->has_scales()) return;
        std::vector<QuantizedTensor> all;
        for (const std::string& name : parts())
            for (QuantizedTensor& t : work_->load(name)) all.push_back(std::move(t));
        // Every step has rows of its own, as far as there are calibration rows to match.
        const int rows = std::clamp(2 * o_.distill_steps, 2, std::max(2, 2 * o_.cal_rows));
        DistillOptions d{.rows = token_rows(rows, short_cols()), .steps = o_.distill_steps};
        if (d.rows.size() < 2) return;  // one must judge
        d.progress = [this](const std::string& what) {
            tell(what, static_cast<int>(spec_.blocks.size()));
        };
        const DistillReport r = distill(s_, source_, spec_, *work_, all, d);
        log(LogLevel::info,
            "divergence on held-out calibration text {:.5f}, after distillation {:.5f}", r.before,
            r.after);
        work_->save_scales(all);
    }

    void finish() {
        const std::vector<std::string> names = parts();
        for (const std::string& name : names)
            for (const QuantizedTensor& t : work_->load(name))
                report_.tensors.push_back({t.key.str(), t.matrix.bits, t.proxy_err});
        report_.bytes = write_model(source_, spec_, *work_, names,
                                    {.bits = report_.bpw_layers,
                                     .head_bits = static_cast<int>(report_.bpw_head),
                                     .codebook = o_.codebook,
                                     .cal_rows = static_cast<int>(states_->count()),
                                     .cal_cols = o_.cal_cols},
                                    o_.shard_mb, o_.output);
        if (o_.verify) {
            tell("verifying the model", static_cast<int>(spec_.blocks.size()) + 1);
            const auto wrong = check_checkpoint(s_, Checkpoint::open(o_.output));
            if (!wrong.empty())
                throw Error(Errc::invalid_file, {o_.output.string(), {}, {}},
                            fmt::format("written, but {} things are wrong with it, first: {}",
                                        wrong.size(), wrong.front()));
        }
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
    std::map<std::string, double> worth_;  // of each matrix's bits; empty: not measured
    std::map<std::string, int> bits_;
    std::optional<WorkFolder> work_;
    std::optional<RowStates> states_;  // of the calibration rows
    Clock::time_point last_save_ = Clock::now();
    ConvertReport report_;
};

}  // namespace

ConvertReport convert(Stream& s, const ConvertOptions& options) {
    return Conversion(s, options).run();
}

}  // namespace exl3
