#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/reply.h"
#include "gen/generator.h"

namespace exl3::server {

/// Counts of observations below each of a list of bounds, as Prometheus has them.
class Histogram {
public:
    explicit Histogram(std::vector<double> bounds);
    void add(double value, int64_t times = 1);
    /// The lines of `name`, with `labels` ("model_name=\"x\"") in each.
    void write(std::string& out, std::string_view name, std::string_view labels) const;

private:
    std::vector<double> bounds_;
    std::vector<int64_t> counts_;  // one more than bounds
    double sum_ = 0;
    int64_t total_ = 0;
};

/// Times and sizes of one finished request.
struct RequestRecord {
    std::string finish;  ///< "stop", "length", "tool_calls", "abort", "error"
    api::Usage usage;
    int64_t max_tokens = 0, n = 1;
    double first_token_seconds = 0;  ///< from the arrival of the request
    double total_seconds = 0;
};

/// Everything /metrics tells: what requests took, and what the generator counts. Names are vLLM's,
/// so its dashboards work; what it has no name for is called exl3:... Thread-safe.
class Metrics {
public:
    Metrics();
    void request_done(const RequestRecord& record);
    /// The pause between two pieces of one answer that were `tokens` tokens apart.
    void between_tokens(double seconds, int64_t tokens);
    void http_done(std::string_view route, int status, double seconds);
    /// Prometheus text 0.0.4. @param stats  nullptr: no model is loaded
    std::string text(const std::string& model, const GeneratorStats* stats) const;

private:
    void write_generator(std::string& out, const std::string& labels,
                         const GeneratorStats& stats) const;
    mutable std::mutex mutex_;
    Histogram first_token_, between_, latency_, queue_, prefill_, decode_, inference_;
    Histogram prompt_size_, answer_size_, params_n_, params_max_tokens_, http_seconds_;
    std::map<std::string, int64_t> finished_;
    std::map<std::pair<std::string, int>, int64_t> http_;
    double prompt_seconds_ = 0, answer_seconds_ = 0;
};

}  // namespace exl3::server
