#include "gen/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gen/log_softmax.h"
#include "gen/session.h"

namespace exl3 {
namespace {

/// Mean and variance of a stream of numbers (Welford).
struct Moments {
    int64_t n = 0;
    double mean = 0, squares = 0;
    void add(double x) {
        ++n;
        const double d = x - mean;
        mean += d / static_cast<double>(n);
        squares += d * (x - mean);
    }
    double stderr_of_mean() const {
        return n > 1 ? std::sqrt(squares / static_cast<double>(n) / static_cast<double>(n - 1)) : 0;
    }
};

// So many positions go through the head at once; their logits stay near 64 MiB.
int piece_length(int vocab, int ctx) {
    constexpr int64_t kLogitBytes = int64_t{64} << 20;
    return static_cast<int>(
        std::clamp<int64_t>(kLogitBytes / (int64_t{4} * vocab), 1, std::min(ctx, 512)));
}

int rows_of(std::span<const int32_t> text, const EvalOptions& o) {
    const int least = o.convention == EvalConvention::gguf ? 4 : 2;
    if (o.ctx < least || o.rows < 1)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("found rows of {} tokens and {} rows, needed at least {} and 1",
                                o.ctx, o.rows, least));
    const auto rows = std::min<int64_t>(o.rows, static_cast<int64_t>(text.size()) / o.ctx);
    if (rows == 0)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("the text has {} tokens, needed at least one row of {}",
                                text.size(), o.ctx));
    return static_cast<int>(rows);
}

/// One row: its tokens, cut into the pieces that are fed together.
class Row {
public:
    Row(std::span<const int32_t> text, int index, const EvalOptions& o)
        : tokens_(text.begin() + static_cast<int64_t>(index) * o.ctx,
                  text.begin() + static_cast<int64_t>(index + 1) * o.ctx) {
        if (o.convention == EvalConvention::gguf && o.bos) tokens_[0] = *o.bos;
    }
    std::span<const int32_t> piece(int begin, int length) const {
        return std::span(tokens_).subspan(
            static_cast<size_t>(begin),
            std::min(static_cast<size_t>(length), tokens_.size() - static_cast<size_t>(begin)));
    }
    /// The token after a position, or nothing at the end of the row.
    std::optional<int32_t> next(int64_t position) const {
        const auto i = static_cast<size_t>(position) + 1;
        return i < tokens_.size() ? std::optional(tokens_[i]) : std::nullopt;
    }

private:
    std::vector<int32_t> tokens_;
};

void check_cancel(const EvalOptions& o) {
    if (o.cancel && *o.cancel) throw Error(Errc::cancelled, {}, "interrupted");
}

void report(const EvalOptions& o, int64_t done, int64_t total) {
    if (o.progress) o.progress(done, total);
    check_cancel(o);
}

int real_vocab(const EvalOptions& o, const Model& model) {
    return o.vocab > 0 ? std::min(o.vocab, model.spec().vocab) : model.spec().vocab;
}

double quantile(const std::vector<double>& sorted, double q) {
    if (sorted.empty()) return 0;
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<size_t>(at);
    const size_t high = std::min(low + 1, sorted.size() - 1);
    return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

/// The sums behind a Divergence.
struct Comparison {
    Moments kl, nll, nll_ref;
    std::vector<double> all;
    int64_t agreed = 0, nonfinite = 0;

    void add(const LogSoftmax& q, const LogSoftmax& p, std::optional<int32_t> next) {
        if (!p.finite() || !q.finite()) {
            ++nonfinite;
            return;
        }
        all.push_back(kl_divergence(p, q));
        kl.add(all.back());
        agreed += p.best() == q.best();
        if (!next || !p.holds(*next)) return;
        nll.add(-q.log_p(*next));
        nll_ref.add(-p.log_p(*next));
    }
};

// Feeds one row to both sessions piece by piece and compares position by position.
void compare_row(const Row& row, Session& model, Session& reference, int piece, int ctx, int vocab,
                 Comparison& c, const std::function<void(int)>& after_piece) {
    std::vector<float> wanted;
    LogSoftmax p, q;
    for (int begin = 0; begin < ctx; begin += piece) {
        const auto tokens = row.piece(begin, piece);
        wanted.clear();
        reference.feed_all(tokens, [&](int64_t, ConstView y) {
            for (int64_t r = 0; r < y.shape[0]; ++r)
                wanted.insert(wanted.end(), y.row<float>(r), y.row<float>(r) + vocab);
        });
        model.feed_all(tokens, [&](int64_t first, ConstView y) {
            for (int64_t r = 0; r < y.shape[0]; ++r) {
                const auto n = static_cast<size_t>(vocab);
                p.set({wanted.data() + static_cast<size_t>(first + r - begin) * n, n});
                q.set({y.row<float>(r), n});
                c.add(q, p, row.next(first + r));
            }
        });
        after_piece(begin + static_cast<int>(tokens.size()));
    }
}

// The reference against itself, its second reading cut into smaller pieces.
double noise_floor(const Row& row, const Model& reference, Stream& s, int piece, int ctx,
                   int vocab) {
    const int other = std::max(1, piece / 3);
    Session a(reference, s, {.max_tokens = ctx, .chunk = piece});
    Session b(reference, s, {.max_tokens = ctx, .chunk = other});
    Comparison c;
    compare_row(row, a, b, piece, ctx, vocab, c, [](int) {});
    return c.kl.mean;
}

}  // namespace

std::string_view name_of(EvalConvention convention) {
    return convention == EvalConvention::gguf ? "gguf" : "exl3";
}

Perplexity perplexity(const Model& model, Stream& s, std::span<const int32_t> text,
                      const EvalOptions& o) {
    const int rows = rows_of(text, o), vocab = real_vocab(o, model);
    const int piece = piece_length(model.spec().vocab, o.ctx);
    const int64_t first_scored = o.convention == EvalConvention::gguf ? o.ctx / 2 : 0;
    Session session(model, s, {.max_tokens = o.ctx, .kv_bits = o.kv_bits, .chunk = piece});
    Moments nll;
    Perplexity result{.rows = rows};
    LogSoftmax p;
    for (int i = 0; i < rows; ++i) {
        const Row row(text, i, o);
        session.truncate(0);
        for (int begin = 0; begin < o.ctx; begin += piece) {
            session.feed_all(row.piece(begin, piece), [&](int64_t first, ConstView y) {
                for (int64_t r = 0; r < y.shape[0]; ++r) {
                    const auto next = row.next(first + r);
                    if (!next || first + r < first_scored) continue;
                    p.set({y.row<float>(r), static_cast<size_t>(vocab)});
                    if (p.finite() && p.holds(*next))
                        nll.add(-p.log_p(*next));
                    else
                        ++result.nonfinite;
                }
            });
            report(o, int64_t{i} * o.ctx + std::min(begin + piece, o.ctx), int64_t{rows} * o.ctx);
        }
    }
    result.tokens = nll.n;
    result.ppl = std::exp(nll.mean);
    result.stderr_ppl = result.ppl * nll.stderr_of_mean();
    return result;
}

Divergence divergence(const Model& model, const Model& reference, Stream& s,
                      std::span<const int32_t> text, const EvalOptions& o) {
    const int vocab = std::min(real_vocab(o, model), real_vocab(o, reference));
    if (o.vocab == 0 && model.spec().vocab != reference.spec().vocab)
        throw Error(Errc::invalid_argument, {},
                    fmt::format("the model has {} token ids and the reference {}, needed as many",
                                model.spec().vocab, reference.spec().vocab));
    const int rows = rows_of(text, o);
    const int piece = piece_length(std::max(model.spec().vocab, reference.spec().vocab), o.ctx);
    Session ours(model, s, {.max_tokens = o.ctx, .kv_bits = o.kv_bits, .chunk = piece});
    Session theirs(reference, s, {.max_tokens = o.ctx, .chunk = piece});
    Comparison c;
    Divergence result;
    for (int i = 0; i < rows; ++i) {
        ours.truncate(0);
        theirs.truncate(0);
        compare_row(Row(text, i, o), ours, theirs, piece, o.ctx, vocab, c,
                    [&](int done) { report(o, int64_t{i} * o.ctx + done, int64_t{rows} * o.ctx); });
    }
    result.noise_floor = noise_floor(Row(text, 0, o), reference, s, piece, o.ctx, vocab);
    std::sort(c.all.begin(), c.all.end());
    result.mean = c.kl.mean;
    result.stderr_mean = c.kl.stderr_of_mean();
    result.median = quantile(c.all, 0.5);
    result.p90 = quantile(c.all, 0.9);
    result.p99 = quantile(c.all, 0.99);
    result.tokens = c.kl.n;
    result.top1 = c.kl.n ? static_cast<double>(c.agreed) / static_cast<double>(c.kl.n) : 0;
    result.ppl = std::exp(c.nll.mean);
    result.ppl_ref = std::exp(c.nll_ref.mean);
    result.nonfinite = c.nonfinite;
    return result;
}

}  // namespace exl3
