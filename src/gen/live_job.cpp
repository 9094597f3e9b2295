#include "gen/live_job.h"

#include <algorithm>

#include "text/unicode.h"

namespace exl3 {

LiveJob::LiveJob(JobRequest r, std::shared_ptr<Mailbox> m, std::vector<int32_t> prompt,
                 TextOutput t)
    : request(std::move(r)),
      mailbox(std::move(m)),
      state(request.sampler->start(prompt, request.seed)),
      text(std::move(t)),
      loop(request.loop),
      submitted(Clock::now()),
      root(root_name(request.cache_salt)) {
    // The sequence grows without allocating, as far as a reasonable answer goes.
    constexpr int64_t kMost = int64_t{1} << 18;
    const int64_t length = size() + std::min(std::max<int64_t>(request.max_new_tokens, 0), kMost);
    state.history.reserve(static_cast<size_t>(length + 1));
    pages.reserve(static_cast<size_t>(length / kPageTokens + 2));
    names.reserve(static_cast<size_t>(length / kPageTokens + 2));
    result.prompt_tokens = static_cast<int64_t>(request.prompt.size());
    name_pages();
}

namespace {

constexpr size_t kLine = 64;  // bytes

void prefetch_bytes(const void* at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(static_cast<const char*>(at) + i);
}

}  // namespace

void LiveJob::prefetch() const {
    prefetch_bytes(this, sizeof *this);
}

void LiveJob::prefetch_parts() const {
    prefetch_bytes(mailbox.get(), sizeof *mailbox);
    prefetch_bytes(state.history.data() + state.history.size(), kLine);
    text.prefetch();
}

void LiveJob::name_pages() {
    while (static_cast<int64_t>(names.size() + 1) * kPageTokens <= size()) {
        const int page = static_cast<int>(names.size());
        names.push_back(page_name(name_before(page), page_tokens(page)));
    }
}

namespace {

// The tokens that begin with the bytes of `id`, which the model may write instead of it.
TokenMask tokens_beginning_with(const std::string& bytes, const Tokenizer& tokenizer) {
    TokenMask mask(tokenizer.vocab_size());
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
        if (!tokenizer.is_special(id) && tokenizer.bytes_of(id).starts_with(bytes)) mask.set(id);
    return mask;
}

// The bytes to heal: of the last prompt token, if it is ordinary text of whole characters.
std::string bytes_to_heal(const JobRequest& r, const Tokenizer& tokenizer) {
    if (!r.token_healing || r.prompt.size() < 2) return {};
    const int32_t last = r.prompt.back();
    if (tokenizer.is_special(last) || tokenizer.is_added(last)) return {};
    std::string bytes = tokenizer.bytes_of(last);
    return text::is_valid_utf8(bytes) ? bytes : std::string{};
}

}  // namespace

std::unique_ptr<LiveJob> make_job(JobRequest r, const Tokenizer& tokenizer) {
    if (r.token_healing && r.constraint)
        throw Error(Errc::invalid_argument, {},
                    "token healing and a constraint: found both, needed one of them");
    std::sort(r.stop.tokens.begin(), r.stop.tokens.end());
    const std::string healed = bytes_to_heal(r, tokenizer);
    std::vector<int32_t> prompt = r.prompt;
    if (!healed.empty()) prompt.pop_back();
    TextOutput text(tokenizer, {.stop = r.stop,
                                .banned = r.banned_strings,
                                .keep_special = r.keep_special,
                                .stops_from = r.min_new_tokens,
                                .healed = healed});
    auto mailbox = std::make_shared<Mailbox>(r.on_news);
    auto job = std::make_unique<LiveJob>(std::move(r), std::move(mailbox), std::move(prompt),
                                         std::move(text));
    if (!healed.empty()) job->first_mask = tokens_beginning_with(healed, tokenizer);
    return job;
}

}  // namespace exl3
