#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace exl3::server {
namespace {

// Bounds as vLLM has them, so that its dashboards show our numbers in the same buckets.
const std::vector<double> kFirstToken = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                         0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                         20,    40,    80,   160,  640,  2560};
const std::vector<double> kBetween = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                      0.15,  0.2,    0.3,   0.4,  0.5,   0.75, 1,     2.5,
                                      5,     7.5,    10,    20,   40,    80};
const std::vector<double> kLatency = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                      30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kTokens = {1,   2,    5,    10,   20,    50,    100,   200,
                                     500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
const std::vector<double> kChoices = {1, 2, 5, 10, 20};
const std::vector<double> kHttp = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                   0.1,    0.5,   1,      5,     10,   60};

void describe(std::string& out, std::string_view name, std::string_view type,
              std::string_view help) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <typename T>
void single(std::string& out, std::string_view name, std::string_view type, std::string_view help,
            std::string_view labels, T value) {
    describe(out, name, type, help);
    out += fmt::format("{}{{{}}} {}\n", name, labels, value);
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value, int64_t times) {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<size_t>(at)] += times;
    sum_ += value * static_cast<double>(times);
    total_ += times;
}

void Histogram::write(std::string& out, std::string_view name, std::string_view labels) const {
    int64_t below = 0;
    for (size_t i = 0; i < bounds_.size(); ++i) {
        below += counts_[i];
        out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bounds_[i], below);
    }
    out += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, total_);
    out += fmt::format("{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, labels, sum_, name, labels,
                       total_);
}

Metrics::Metrics()
    : first_token_(kFirstToken),
      between_(kBetween),
      latency_(kLatency),
      queue_(kLatency),
      prefill_(kLatency),
      decode_(kLatency),
      inference_(kLatency),
      prompt_size_(kTokens),
      answer_size_(kTokens),
      params_n_(kChoices),
      params_max_tokens_(kTokens),
      http_seconds_(kHttp) {
    for (const char* finish : {"stop", "length", "tool_calls", "abort", "error"})
        finished_[finish] = 0;
}

void Metrics::request_done(const RequestRecord& r) {
    const std::lock_guard lock(mutex_);
    ++finished_[r.finish];
    latency_.add(r.total_seconds);
    queue_.add(r.usage.queue_seconds);
    prefill_.add(r.usage.prompt_seconds);
    decode_.add(r.usage.completion_seconds);
    inference_.add(r.usage.prompt_seconds + r.usage.completion_seconds);
    prompt_size_.add(static_cast<double>(r.usage.prompt_tokens));
    answer_size_.add(static_cast<double>(r.usage.completion_tokens));
    params_n_.add(static_cast<double>(r.n));
    params_max_tokens_.add(static_cast<double>(r.max_tokens));
    if (r.first_token_seconds > 0) first_token_.add(r.first_token_seconds);
    prompt_seconds_ += r.usage.prompt_seconds;
    answer_seconds_ += r.usage.completion_seconds;
}

void Metrics::between_tokens(double seconds, int64_t tokens) {
    if (tokens < 1) return;
    const std::lock_guard lock(mutex_);
    between_.add(seconds / static_cast<double>(tokens), tokens);
}

void Metrics::http_done(std::string_view route, int status, double seconds) {
    const std::lock_guard lock(mutex_);
    ++http_[{std::string(route), status}];
    http_seconds_.add(seconds);
}

void Metrics::write_generator(std::string& out, const std::string& labels,
                              const GeneratorStats& s) const {
    const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
        single(out, name, "gauge", help, labels, value);
    };
    const auto counter = [&](std::string_view name, std::string_view help, auto value) {
        single(out, name, "counter", help, labels, value);
    };
    const double used =
        s.pages > 0 ? static_cast<double>(s.pages_in_use) / static_cast<double>(s.pages) : 0.0;
    gauge("vllm:num_requests_running", "Jobs that are being run.", s.running);
    gauge("vllm:num_requests_waiting", "Jobs that wait for room.", s.waiting);
    gauge("vllm:kv_cache_usage_perc", "Share of the cache that running jobs hold, 0 to 1.", used);
    gauge("vllm:gpu_cache_usage_perc", "The same under an older name.", used);
    gauge("exl3:kv_pages_total", "Pages of the cache.", s.pages);
    gauge("exl3:kv_pages_free", "Pages that no job holds.", s.pages - s.pages_in_use);
    gauge("exl3:kv_pages_cached", "Free pages whose contents can be found again.", s.pages_cached);
    counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up.", s.prompt_tokens);
    counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the cache.", s.cached_tokens);
    counter("vllm:prompt_tokens_total", "Prompt tokens of admitted jobs.", s.prompt_tokens);
    counter("vllm:generation_tokens_total", "Tokens produced.", s.new_tokens);
    counter("vllm:num_preemptions_total", "Jobs that gave up their pages.", s.preemptions);
    counter("vllm:spec_decode_num_draft_tokens_total", "Tokens drafted.", s.drafted);
    counter("vllm:spec_decode_num_accepted_tokens_total", "Drafted tokens that became text.",
            s.accepted_drafts);
    describe(out, "vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter",
             "Accepted drafts by their place in the window.");
    for (size_t i = 0; i < s.accepted_at.size(); ++i)
        out += fmt::format(
            "vllm:spec_decode_num_accepted_tokens_per_pos_total{{{},position=\"{}\"}} "
            "{}\n",
            labels, i, s.accepted_at[i]);
    counter("exl3:decode_steps_total", "Forward passes.", s.steps);
    counter("exl3:step_tokens_total", "Positions that went through the model.", s.step_tokens);
    counter("exl3:page_evictions_total", "Cached contents given up.", s.page_evictions);
    counter("exl3:scheduler_seconds_total", "Spent outside model and sampler.",
            s.scheduler_seconds);
    counter("exl3:jobs_done_total", "Jobs that ended.", s.jobs_done);
    counter("exl3:jobs_failed_total", "Jobs that ended by an error.", s.jobs_failed);
    counter("exl3:jobs_cancelled_total", "Jobs that were cancelled.", s.jobs_cancelled);
}

std::string Metrics::text(const std::string& model, const GeneratorStats* stats) const {
    const std::string labels = fmt::format("model_name=\"{}\"", escaped(model));
    std::string out;
    if (stats) write_generator(out, labels, *stats);
    const std::lock_guard lock(mutex_);
    describe(out, "vllm:request_success_total", "counter", "Finished requests by their end.");
    for (const auto& [finish, count] : finished_)
        out += fmt::format("vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", labels,
                           finish, count);
    single(out, "exl3:prompt_seconds_total", "counter", "Spent reading prompts.", labels,
           prompt_seconds_);
    single(out, "exl3:generation_seconds_total", "counter", "Spent writing answers.", labels,
           answer_seconds_);
    const auto histogram = [&](std::string_view name, std::string_view help, const Histogram& h) {
        describe(out, name, "histogram", help);
        h.write(out, name, labels);
    };
    histogram("vllm:time_to_first_token_seconds", "From the request to its first token.",
              first_token_);
    histogram("vllm:inter_token_latency_seconds", "Between two tokens of an answer.", between_);
    histogram("vllm:time_per_output_token_seconds", "The same under an older name.", between_);
    histogram("vllm:e2e_request_latency_seconds", "From the request to its end.", latency_);
    histogram("vllm:request_queue_time_seconds", "Waiting for room.", queue_);
    histogram("vllm:request_prefill_time_seconds", "Reading the prompt.", prefill_);
    histogram("vllm:request_decode_time_seconds", "Writing the answer.", decode_);
    histogram("vllm:request_inference_time_seconds", "Reading and writing.", inference_);
    histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", prompt_size_);
    histogram("vllm:request_generation_tokens", "Tokens of an answer.", answer_size_);
    histogram("vllm:request_params_n", "Answers asked for.", params_n_);
    histogram("vllm:request_params_max_tokens", "Limits asked for.", params_max_tokens_);
    histogram("exl3:http_request_duration_seconds", "HTTP requests, to their last byte.",
              http_seconds_);
    describe(out, "exl3:http_requests_total", "counter", "HTTP requests by route and status.");
    for (const auto& [key, count] : http_)
        out += fmt::format("exl3:http_requests_total{{route=\"{}\",status=\"{}\"}} {}\n",
                           escaped(key.first), key.second, count);
    return out;
}

}  // namespace exl3::server
