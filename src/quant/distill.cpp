#include "quant/distill.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "base/random.h"
#include "quant/basis.h"
#include "train/decoder.h"

namespace exl3 {
namespace {

using train::Matrix;
using train::Sequences;
using Clock = std::chrono::steady_clock;

constexpr auto kSaveInterval = std::chrono::seconds(60);
constexpr std::string_view kState = "distill-state";
constexpr int kHeldOutEvery = 10;  // one row in this many only judges

/// Scales of one side of a matrix, relative to the stored ones, with Adam's averages.
struct Scales {
    explicit Scales(int64_t n = 0)
        : value(static_cast<size_t>(n), 1.0f),
          mean(value.size()),
          square(value.size()),
          gradient(value.size()) {}
    std::vector<float> value, mean, square;
    std::vector<double> gradient;

    /// One step of Adam; step counts from 1.
    void move(double rate, int step) {
        constexpr double kMean = 0.9, kSquare = 0.98;
        const double mean_fix = 1 - std::pow(kMean, step), square_fix = 1 - std::pow(kSquare, step);
        for (size_t i = 0; i < value.size(); ++i) {
            const double g = gradient[i];
            mean[i] = static_cast<float>(kMean * mean[i] + (1 - kMean) * g);
            square[i] = static_cast<float>(kSquare * square[i] + (1 - kSquare) * g * g);
            value[i] -= static_cast<float>(rate * (mean[i] / mean_fix) /
                                           (std::sqrt(square[i] / square_fix) + 1e-12));
            gradient[i] = 0;
        }
    }
};

/// A matrix whose scales move.
struct Moving {
    train::LinearWeight* linear = nullptr;
    Matrix base;  // the weight as quantized
    Scales in, out;

    void apply() const {
        for (int64_t j = 0; j < base.rows; ++j)
            for (int64_t i = 0; i < base.cols; ++i)
                linear->weight.row(j)[i] = base.row(j)[i] * out.value[static_cast<size_t>(j)] *
                                           in.value[static_cast<size_t>(i)];
    }
};

/// Collects the gradients by the scales: y_j and x_i are proportional to theirs.
class ScaleTap final : public train::GradientTap {
public:
    explicit ScaleTap(std::map<std::string, Moving>& moving) : moving_(moving) {}
    void linear(Stream&, const train::LinearGradient& g) override {
        Moving& m = moving_.at(g.linear.spec.key.str());
        for (int64_t t = 0; t < g.x.rows; ++t) {
            const float *x = g.x.row(t), *dx = g.dx.row(t), *y = g.y.row(t), *dy = g.dy.row(t);
            for (int64_t i = 0; i < g.x.cols; ++i)
                m.in.gradient[static_cast<size_t>(i)] += x[i] * dx[i];
            for (int64_t j = 0; j < g.y.cols; ++j) {
                const float bias =
                    g.linear.bias.empty() ? 0 : g.linear.bias[static_cast<size_t>(j)];
                m.out.gradient[static_cast<size_t>(j)] += (y[j] - bias) * dy[j];
            }
        }
    }

private:
    std::map<std::string, Moving>& moving_;
};

void to_probabilities(float* row, int64_t n) {
    const float top = *std::max_element(row, row + n);
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += row[j] = std::exp(row[j] - top);
    for (int64_t j = 0; j < n; ++j) row[j] /= static_cast<float>(sum);
}

class Distillation {
public:
    Distillation(Stream& s, const Checkpoint& source, const ModelSpec& spec, const WorkFolder& work,
                 std::vector<QuantizedTensor>& tensors, const DistillOptions& options)
        : s_(s),
          work_(work),
          tensors_(tensors),
          o_(options),
          length_(static_cast<int64_t>(options.rows.front().size())),
          teacher_ends_(source, spec, train::plain_weights(source)),
          student_(source, spec, quantized_weights()) {
        held_out_ = std::max<size_t>(1, o_.rows.size() / kHeldOutEvery);
        EXL3_CHECK(o_.rows.size() > held_out_);
        observe_teacher(source, spec);
        student_.each_linear([&](train::LinearWeight& w) {
            Moving& m = moving_[w.spec.key.str()];
            m.linear = &w;
            m.base = w.weight;
            m.in = Scales(w.spec.in);
            m.out = Scales(w.spec.out);
        });
    }

    DistillReport run() {
        restore();
        if (step_ == 0) report_.before = held_out();
        for (; step_ < o_.steps; ++step_) {
            if (o_.progress)
                o_.progress(fmt::format("distilling: step {} of {}", step_ + 1, o_.steps));
            descend();
            if (Clock::now() - last_save_ > kSaveInterval) save(step_ + 1);
        }
        report_.after = held_out();
        if (report_.after < report_.before) store();
        return report_;
    }

private:
    train::WeightSource quantized_weights() {
        return [this](const LinearSpec& spec) {
            const auto it = std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& t) {
                return t.key.str() == spec.key.str();
            });
            EXL3_CHECK(it != tensors_.end());
            const Exl3Matrix& m = it->matrix;
            const std::vector<float> w = reconstruct(s_, m);
            train::LinearWeight out{.spec = spec, .weight = Matrix(spec.out, spec.in), .bias = {}};
            for (int64_t j = 0; j < spec.out; ++j)
                for (int64_t i = 0; i < spec.in; ++i)
                    out.weight.row(j)[i] = w[static_cast<size_t>(i * m.n + j)];
            if (!m.bias.empty()) out.bias.assign(m.bias.begin(), m.bias.begin() + spec.out);
            return out;
        };
    }

    // What the head of the source reads, for every token: its logits follow by one product.
    void observe_teacher(const Checkpoint& source, const ModelSpec& spec) {
        std::vector<int32_t> ids;
        for (const auto& row : o_.rows) ids.insert(ids.end(), row.begin(), row.end());
        teacher_ = teacher_ends_.embed(ids);
        for (const BlockSpec& each : spec.blocks) {
            if (o_.progress) o_.progress(each.key.str() + ": the source's states");
            const train::Block block(source, each, spec.hidden, train::plain_weights(source));
            for (size_t r = 0; r < o_.rows.size(); ++r) {
                Matrix x = teacher_rows(static_cast<int64_t>(r) * length_, length_);
                train::Block::Tape tape;
                block.forward(s_, {1, length_}, x, tape);
                std::copy(x.data.begin(), x.data.end(),
                          teacher_.row(static_cast<int64_t>(r) * length_));
            }
        }
        teacher_ = teacher_ends_.normed(teacher_);
    }

    Matrix teacher_rows(int64_t first, int64_t count) const {
        Matrix part(count, teacher_.cols);
        std::copy(teacher_.row(first), teacher_.row(first) + count * teacher_.cols,
                  part.data.data());
        return part;
    }

    // Divergence of some rows; with a tap also the gradients by everything.
    double divergence(const std::vector<size_t>& rows, train::GradientTap* tap) {
        const Sequences q{static_cast<int64_t>(rows.size()), length_};
        std::vector<int32_t> ids;
        Matrix teacher(q.tokens(), teacher_.cols);
        for (size_t i = 0; i < rows.size(); ++i) {
            ids.insert(ids.end(), o_.rows[rows[i]].begin(), o_.rows[rows[i]].end());
            const float* from = teacher_.row(static_cast<int64_t>(rows[i]) * length_);
            std::copy(from, from + length_ * teacher_.cols,
                      teacher.row(static_cast<int64_t>(i) * length_));
        }
        const Matrix x = student_.forward(s_, q, ids);
        double sum = 0;
        const auto loss = [&](int64_t first, Matrix& logits) {
            Matrix part(logits.rows, teacher.cols);
            std::copy(teacher.row(first), teacher.row(first) + part.rows * part.cols,
                      part.data.data());
            Matrix p = teacher_ends_.logits(s_, part);
            for (int64_t t = 0; t < logits.rows; ++t) {
                float *student = logits.row(t), *wanted = p.row(t);
                to_probabilities(student, logits.cols);
                to_probabilities(wanted, p.cols);
                for (int64_t j = 0; j < logits.cols; ++j) {
                    if (wanted[j] > 0)
                        sum += wanted[j] * std::log(wanted[j] / std::max(student[j], 1e-30f));
                    student[j] = (student[j] - wanted[j]) / static_cast<float>(q.tokens());
                }
            }
        };
        struct Nothing final : train::GradientTap {
            void linear(Stream&, const train::LinearGradient&) override {}
        } nothing;
        if (tap)
            student_.backward(s_, q, x, loss, *tap);
        else
            student_.ends().backward(s_, x, loss, nothing);
        return sum / static_cast<double>(q.tokens());
    }

    double held_out() {
        double sum = 0;
        for (size_t i = 0; i < held_out_; ++i)
            sum += divergence({i * kHeldOutEvery % o_.rows.size()}, nullptr);
        return sum / static_cast<double>(held_out_);
    }

    // Rows of a step: all that are not held out, in an order that is shuffled anew each epoch.
    std::vector<size_t> batch() const {
        std::vector<size_t> open;
        for (size_t r = 0; r < o_.rows.size(); ++r)
            if (r % kHeldOutEvery != 0 || r / kHeldOutEvery >= held_out_) open.push_back(r);
        std::vector<size_t> rows;
        for (int i = 0; i < o_.batch; ++i) {
            const auto at =
                static_cast<size_t>(step_) * static_cast<size_t>(o_.batch) + static_cast<size_t>(i);
            std::vector<size_t> order = open;
            Random random(noise64(0xd157, at / open.size()));
            for (size_t j = order.size(); j > 1; --j)
                std::swap(order[j - 1], order[random.below(j)]);
            rows.push_back(order[at % open.size()]);
        }
        return rows;
    }

    void descend() {
        ScaleTap tap(moving_);
        divergence(batch(), &tap);
        // Short warm-up, then down to nothing along a cosine.
        constexpr int kWarm = 4;
        const double share = static_cast<double>(step_) / o_.steps;
        const double rate = o_.rate * std::min(1.0, (step_ + 1.0) / kWarm) * 0.5 *
                            (1 + std::cos(share * 3.14159265358979));
        for (auto& [name, m] : moving_) {
            m.in.move(rate, step_ + 1);
            m.out.move(rate, step_ + 1);
            m.apply();
        }
    }

    template <typename Fn>
    void each_array(Fn&& fn) {
        for (auto& [name, m] : moving_)
            for (auto* scales : {&m.in, &m.out}) {
                const std::string side = name + (scales == &m.in ? ".in." : ".out.");
                fn(side + "value", scales->value);
                fn(side + "mean", scales->mean);
                fn(side + "square", scales->square);
            }
    }

    void save(int step) {
        std::vector<TensorToWrite> out;
        each_array([&](const std::string& name, std::vector<float>& v) {
            out.push_back({name, DType::f32, {static_cast<int64_t>(v.size())}, v.data()});
        });
        const auto steps = static_cast<double>(step);
        out.push_back({"step", DType::f64, {}, &steps});
        out.push_back({"before", DType::f64, {}, &report_.before});
        work_.save_tensors(std::string(kState), out);
        last_save_ = Clock::now();
    }

    void restore() {
        if (!work_.has(std::string(kState))) return;
        const SafetensorsFile file = work_.open(std::string(kState));
        const auto copy = [&](const std::string& name, void* to, size_t bytes) {
            const TensorInfo* info = file.find(name);
            if (!info || info->bytes != bytes)
                throw Error(Errc::invalid_file, {file.path(), name, {}},
                            "is missing or of another size; drop the work with --restart");
            std::memcpy(to, file.view(*info).data, bytes);
        };
        double step = 0;
        copy("step", &step, sizeof step);
        copy("before", &report_.before, sizeof report_.before);
        step_ = static_cast<int>(step);
        each_array([&](const std::string& name, std::vector<float>& v) {
            copy(name, v.data(), v.size() * sizeof(float));
        });
        for (auto& [name, m] : moving_) m.apply();
    }

    // Into the tensors, as f16.
    void store() {
        for (QuantizedTensor& t : tensors_) {
            const Moving& m = moving_.at(t.key.str());
            const auto scale = [](std::vector<f16>& stored, const std::vector<float>& factor) {
                for (size_t i = 0; i < factor.size(); ++i) {
                    const float v = to_float(stored[i]);
                    if (v != 0) stored[i] = scale_to_f16(v * factor[i]);
                }
            };
            scale(t.matrix.suh, m.in.value);
            scale(t.matrix.svh, m.out.value);
        }
    }

    Stream& s_;
    const WorkFolder& work_;
    std::vector<QuantizedTensor>& tensors_;
    const DistillOptions& o_;
    int64_t length_;
    size_t held_out_ = 0;
    train::Ends teacher_ends_;
    train::Decoder student_;
    Matrix teacher_;  // (all tokens, hidden): what the source's head reads
    std::map<std::string, Moving> moving_;
    int step_ = 0;
    Clock::time_point last_save_ = Clock::now();
    DistillReport report_;
};

}  // namespace

DistillReport distill(Stream& s, const Checkpoint& source, const ModelSpec& spec,
                      const WorkFolder& work, std::vector<QuantizedTensor>& tensors,
                      const DistillOptions& options) {
    return Distillation(s, source, spec, work, tensors, options).run();
}

}  // namespace exl3
