#include "quant/fisher.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/random.h"
#include "quant/hessian.h"
#include "quant/row_scales.h"
#include "train/decoder.h"

namespace exl3 {
namespace {

using train::Matrix;
using train::Sequences;

constexpr int64_t kBatchTokens = 2048;
constexpr std::string_view kSensitivity = "sensitivity";

int64_t padded(int64_t n) {
    return (n + 127) / 128 * 128;
}

/// Sums of one matrix over all tokens.
struct Moments {
    LinearSpec spec;
    std::vector<double> column_square;  // of the weight, (n)
    Matrix output;                      // lower triangle of the sum of dy dyᵀ
    std::vector<double> diagonal;
};

/// Sums the moments of every matrix of one part of the model.
class FisherTap final : public train::GradientTap {
public:
    explicit FisherTap(int64_t max_output) : max_output_(max_output) {}

    void linear(Stream& s, const train::LinearGradient& g) override {
        const LinearSpec& spec = g.linear.spec;
        auto it = inputs_.find(spec.tag);
        if (it == inputs_.end()) {
            it = inputs_.emplace(spec.tag, Hessian(padded(spec.in))).first;
            owner_[spec.tag] = spec.key.str();
        }
        if (owner_[spec.tag] == spec.key.str()) it->second.add(s, g.x.view());
        Moments& m = moments_of(g.linear);
        for (int64_t t = 0; t < g.dy.rows; ++t)
            for (int64_t j = 0; j < g.dy.cols; ++j)
                m.diagonal[static_cast<size_t>(j)] +=
                    static_cast<double>(g.dy.row(t)[j]) * g.dy.row(t)[j];
        if (m.output.rows > 0)
            ops::gemm(s, {.a = g.dy.view(),
                          .b = g.dy.view(),
                          .c = m.output.view(),
                          .transpose_a = true,
                          .beta = 1,
                          .lower = true});
        if (spec.key.str() == order_.front()) tokens_ += g.dy.rows;
    }

    std::vector<LinearFisher> finish(Stream& s, uint64_t seed) {
        std::map<std::string, double> trace;
        for (auto& [tag, hessian] : inputs_) {
            const FinalHessian h = finalize(std::move(hessian));
            trace[tag] = h.usable ? trace_of_feedback(s, h, seed) : 0;
        }
        std::vector<LinearFisher> out;
        for (const std::string& key : order_) {
            Moments& m = moments_.at(key);
            const double scale = 1 / static_cast<double>(tokens_);
            LinearFisher f{.key = m.spec.key};
            double weighed = 0;
            for (size_t j = 0; j < m.diagonal.size(); ++j) {
                f.output_diagonal.push_back(static_cast<float>(m.diagonal[j] * scale));
                weighed += m.diagonal[j] * scale * m.column_square[j] / m.spec.in;
            }
            f.sensitivity = 0.5 * weighed * trace[m.spec.tag];
            for (int64_t i = 0; i < m.output.rows; ++i)
                for (int64_t j = 0; j <= i; ++j) {
                    const auto v = static_cast<float>(m.output.row(i)[j] * scale);
                    m.output.row(i)[j] = v;
                    m.output.row(j)[i] = v;
                }
            f.output = std::move(m.output.data);
            out.push_back(std::move(f));
        }
        return out;
    }

private:
    // tr D of the rotated metric: what white rounding noise costs after feedback.
    static double trace_of_feedback(Stream& s, const FinalHessian& h, uint64_t seed) {
        std::vector<float> signs(static_cast<size_t>(h.k), 1.0f);
        draw_signs(signs, seed);
        std::vector<float> factor = rotated(s, h, signs, 0.025 + h.uncertainty);
        return block_ldl(s, factor, h.k);
    }

    Moments& moments_of(const train::LinearWeight& w) {
        const auto [it, fresh] = moments_.try_emplace(w.spec.key.str());
        Moments& m = it->second;
        if (!fresh) return m;
        order_.push_back(w.spec.key.str());
        m.spec = w.spec;
        const auto n = static_cast<size_t>(w.spec.out);
        m.diagonal.resize(n);
        m.column_square.resize(n);
        for (size_t j = 0; j < n; ++j)
            for (int64_t i = 0; i < w.weight.cols; ++i)
                m.column_square[j] += std::pow(w.weight.row(static_cast<int64_t>(j))[i], 2);
        if (!w.spec.head && w.spec.out <= max_output_) m.output = Matrix(w.spec.out, w.spec.out);
        return m;
    }

    int64_t max_output_, tokens_ = 0;
    std::vector<std::string> order_;
    std::map<std::string, Moments> moments_;
    std::map<std::string, Hessian> inputs_;
    std::map<std::string, std::string> owner_;  // the matrix whose input is summed for a tag
};

// Replaces logits by the gradient of -log p of a token drawn from p.
void draw_gradient(Matrix& logits, uint64_t seed, int64_t first) {
    for (int64_t t = 0; t < logits.rows; ++t) {
        float* row = logits.row(t);
        const float top = *std::max_element(row, row + logits.cols);
        double sum = 0;
        for (int64_t j = 0; j < logits.cols; ++j) sum += row[j] = std::exp(row[j] - top);
        const double point = to_unit(noise64(seed, static_cast<uint64_t>(first + t))) * sum;
        double passed = 0;
        int64_t drawn = logits.cols - 1;
        for (int64_t j = 0; j < logits.cols; ++j) {
            passed += row[j];
            if (passed >= point) {
                drawn = j;
                break;
            }
        }
        for (int64_t j = 0; j < logits.cols; ++j) row[j] /= static_cast<float>(sum);
        row[drawn] -= 1;
    }
}

/// Hidden states before every block and after the last, each (tokens, hidden).
struct Pass {
    Stream& s;
    const Checkpoint& c;
    const ModelSpec& spec;
    const FisherOptions& o;
    int64_t length = 0, tokens = 0;
    train::WeightSource source;

    template <typename Fn>
    void each_batch(Fn&& fn) const {
        const int64_t rows = std::max<int64_t>(1, kBatchTokens / length);
        const auto all = static_cast<int64_t>(o.rows.size());
        for (int64_t r = 0; r < all; r += rows)
            fn(Sequences{std::min(rows, all - r), length}, r * length);
    }
    Matrix cut(const Matrix& m, int64_t begin, int64_t count) const {
        Matrix part(count, m.cols);
        std::copy(m.row(begin), m.row(begin) + count * m.cols, part.data.data());
        return part;
    }
    train::Block block(int layer) const {
        return {c, spec.blocks[static_cast<size_t>(layer)], spec.hidden, source};
    }
};

}  // namespace

void measure_fisher(Stream& s, const Checkpoint& c, const ModelSpec& spec,
                    const FisherOptions& options, const FisherVisitor& visit) {
    Pass p{.s = s, .c = c, .spec = spec, .o = options, .source = train::plain_weights(c)};
    p.length = static_cast<int64_t>(options.rows.front().size());
    p.tokens = p.length * static_cast<int64_t>(options.rows.size());
    const auto tell = [&](const std::string& what) {
        if (options.progress) options.progress(what);
    };
    const auto layers = static_cast<int>(spec.blocks.size());
    std::vector<Matrix> states;
    Matrix gradient(p.tokens, spec.hidden);
    {
        const train::Ends ends(c, spec, p.source);
        std::vector<int32_t> ids;
        for (const auto& row : options.rows) ids.insert(ids.end(), row.begin(), row.end());
        states.push_back(ends.embed(ids));
        for (int i = 0; i < layers; ++i) {
            tell(spec.blocks[static_cast<size_t>(i)].key.str() + ": forward");
            const train::Block block = p.block(i);
            Matrix next(p.tokens, spec.hidden);
            p.each_batch([&](const Sequences& q, int64_t first) {
                train::Block::Tape tape;
                Matrix x = p.cut(states.back(), first, q.tokens());
                block.forward(s, q, x, tape);
                std::copy(x.data.begin(), x.data.end(), next.row(first));
            });
            states.push_back(std::move(next));
        }
        tell("head: backward");
        FisherTap tap(options.max_output);
        gradient = ends.backward(
            s, states.back(),
            [&](int64_t first, Matrix& logits) { draw_gradient(logits, options.seed, first); },
            tap);
        visit(layers, tap.finish(s, options.seed));
    }
    for (int i = layers; i-- > 0;) {
        tell(spec.blocks[static_cast<size_t>(i)].key.str() + ": backward");
        states.pop_back();
        const train::Block block = p.block(i);
        FisherTap tap(options.max_output);
        p.each_batch([&](const Sequences& q, int64_t first) {
            train::Block::Tape tape;
            Matrix x = p.cut(states.back(), first, q.tokens());
            block.forward(s, q, x, tape);
            Matrix dx = p.cut(gradient, first, q.tokens());
            block.backward(s, q, tape, dx, tap);
            std::copy(dx.data.begin(), dx.data.end(), gradient.row(first));
        });
        visit(i, tap.finish(s, options.seed));
    }
}

FinalHessian output_metric(LinearFisher f, int64_t tokens) {
    const auto n = static_cast<int64_t>(f.output_diagonal.size());
    FinalHessian h{.k = padded(n)};
    h.mean = std::move(f.output);
    if (h.k != n) {
        std::vector<float> wide(static_cast<size_t>(h.k * h.k));
        for (int64_t i = 0; i < n; ++i)
            std::copy_n(h.mean.data() + i * n, n, wide.data() + i * h.k);
        h.mean = std::move(wide);
    }
    for (const float v : f.output_diagonal)
        h.diagonal += static_cast<double>(v) / static_cast<double>(h.k);
    h.usable = std::isfinite(h.diagonal) && h.diagonal > 0;
    h.uncertainty = 0.2 * static_cast<double>(n) / static_cast<double>(tokens);
    return h;
}

void save_fisher(const WorkFolder& work, const std::string& part,
                 const std::vector<LinearFisher>& linears) {
    std::vector<TensorToWrite> out;
    for (const LinearFisher& f : linears) {
        const auto n = static_cast<int64_t>(f.output_diagonal.size());
        out.push_back({(f.key / kSensitivity).str(), DType::f64, {}, &f.sensitivity});
        out.push_back(
            {(f.key / "output_diagonal").str(), DType::f32, {n}, f.output_diagonal.data()});
        if (!f.output.empty())
            out.push_back({(f.key / "output").str(), DType::f32, {n, n}, f.output.data()});
    }
    work.save_tensors(part, out);
}

std::vector<LinearFisher> load_fisher(const WorkFolder& work, const std::string& part) {
    const SafetensorsFile file = work.open(part);
    std::vector<LinearFisher> out;
    for (const TensorInfo& info : file.tensors()) {
        const std::string suffix = "." + std::string(kSensitivity);
        if (!info.name.ends_with(suffix)) continue;
        LinearFisher f{.key = info.name.substr(0, info.name.size() - suffix.size())};
        std::memcpy(&f.sensitivity, file.view(info).data, sizeof f.sensitivity);
        const auto copy = [&](const char* name, std::vector<float>& to) {
            const TensorInfo* t = file.find((f.key / name).str());
            if (!t) return;
            to.resize(t->bytes / sizeof(float));
            std::memcpy(to.data(), file.view(*t).data, t->bytes);
        };
        copy("output_diagonal", f.output_diagonal);
        copy("output", f.output);
        out.push_back(std::move(f));
    }
    return out;
}

}  // namespace exl3
