#include "gen/text_output.h"

#include <algorithm>
#include <iterator>

namespace exl3 {
namespace {

StreamDecoder new_decoder(const Tokenizer& tokenizer, bool keep_special) {
    return StreamDecoder(tokenizer, {.skip_special = !keep_special, .continues = true});
}

}  // namespace

TextOutput::TextOutput(const Tokenizer& tokenizer, Options options)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      decoder_(new_decoder(tokenizer, options_.keep_special)),
      fresh_stop_(options_.stop),
      stop_(fresh_stop_),
      banned_(options_.banned),
      cut_healed_(options_.healed.size()) {
    constexpr size_t kText = 256, kTokens = 64;  // grow rarely, if ever
    piece_.reserve(kText);
    held_.reserve(kText);
    pending_.reserve(kTokens);
}

// The text of a token, without what is still part of the prompt.
void TextOutput::decode(int32_t id) {
    piece_.clear();
    decoder_.push(id, piece_);
    const size_t cut = std::min(cut_healed_, piece_.size());
    piece_.erase(0, cut);
    cut_healed_ -= cut;
}

TextOutput::Next TextOutput::push(JobToken token, const SamplerMemory& memory) {
    const auto index = static_cast<int64_t>(count());
    decode(token.id);
    held_ += piece_;
    return add({.token = std::move(token), .memory = memory}, index);
}

// Takes piece_ as the text of token `index`.
TextOutput::Next TextOutput::add(Pending pending, int64_t index) {
    const bool silent =
        piece_.empty() && !options_.keep_special && tokenizer_.is_special(pending.token.id);
    pending.token.text_offset = static_cast<int64_t>(total_);
    total_ += piece_.size();
    pending.end = total_;
    pending_.push_back(std::move(pending));
    // Tokens that waited for this text share it; one that has no text of its own waits for nothing.
    if (!piece_.empty() || (silent && settled_ + 1 == pending_.size())) {
        for (size_t i = settled_; i < pending_.size(); ++i) pending_[i].end = total_;
        settled_ = pending_.size();
    }
    const Next next = take_text(index >= options_.stops_from);
    if (next != Next::rewind) settle(std::min(stop_safe_, banned_safe()), false);
    return next;
}

// Runs piece_ through both matchers. Whichever finds something that ends first decides.
TextOutput::Next TextOutput::take_text(bool look_for_stops) {
    for (std::string_view rest = piece_; !rest.empty() && !stopped_;) {
        const auto match = banned_.push(rest);
        const size_t taken = match ? match->end - scanned_ : rest.size();
        const std::string_view now = rest.substr(0, taken);
        rest.remove_prefix(taken);
        scanned_ += taken;
        stop_safe_ += look_for_stops ? stop_.advance(now) : taken;
        stopped_ = stop_.stopped();
        if (!match || stopped_) continue;
        const size_t begins = token_at(match->begin);
        if (replaying_ ||
            std::find(tolerated_.begin(), tolerated_.end(), begins) != tolerated_.end())
            continue;
        rewind_to_ = begins;
        return Next::rewind;
    }
    return stopped_ ? Next::stopped : Next::go_on;
}

// Index of the token that a byte of the text came with; it is not released yet.
size_t TextOutput::token_at(size_t byte) const {
    size_t i = 0;
    while (i + 1 < pending_.size() && pending_[i].end <= byte) ++i;
    return released_tokens_ + i;
}

// Text that no banned phrase can take back. A token goes as a whole, so what it says before a
// phrase that may have begun in it waits, too.
size_t TextOutput::banned_safe() const {
    const size_t open = banned_.open();
    if (open == 0) return total_;
    const Pending& begins = pending_[token_at(total_ - open) - released_tokens_];
    return static_cast<size_t>(begins.token.text_offset);
}

const SamplerMemory& TextOutput::rewind_memory() const {
    return pending_[rewind_to_ - released_tokens_].memory;
}

void TextOutput::restart() {
    decoder_ = new_decoder(tokenizer_, options_.keep_special);
    stop_ = StopMatcher(fresh_stop_);
    banned_.restart();
    pending_.clear();
    held_.clear();
    settled_ = total_ = stop_safe_ = scanned_ = final_text_ = final_tokens_ = 0;
    cut_healed_ = options_.healed.size();
}

// Everything is read again, because neither decoders nor matchers can go back.
void TextOutput::rewind(std::span<const int32_t> kept) {
    std::vector<Pending> saved(std::make_move_iterator(pending_.begin()),
                               std::make_move_iterator(pending_.end()));
    restart();
    std::erase_if(tolerated_, [&](size_t i) { return i >= kept.size(); });
    replaying_ = true;
    const size_t released_tokens = std::exchange(released_tokens_, 0);
    for (size_t i = 0; i < kept.size(); ++i) {
        decode(kept[i]);
        // Text that was released is not held again.
        const size_t known = released_ > total_ ? std::min(released_ - total_, piece_.size()) : 0;
        held_.append(piece_, known);
        Pending pending{.token = {.id = kept[i]}};
        if (i >= released_tokens) pending = std::move(saved[i - released_tokens]);
        static_cast<void>(add(std::move(pending), static_cast<int64_t>(i)));
    }
    replaying_ = false;
    EXL3_CHECK(pending_.size() >= released_tokens && total_ >= released_);
    pending_.erase(pending_.begin(),
                   pending_.begin() + static_cast<std::ptrdiff_t>(released_tokens));
    released_tokens_ = released_tokens;
    settled_ -= std::min(settled_, released_tokens);
    settle(std::min(stop_safe_, banned_safe()), false);
}

// Text up to byte `text` is final, and the tokens whose text ends there.
void TextOutput::settle(size_t text, bool all_tokens) {
    final_text_ = text > released_ ? text - released_ : 0;
    final_tokens_ = 0;
    while (final_tokens_ < pending_.size() &&
           (all_tokens || (final_tokens_ < settled_ && pending_[final_tokens_].end <= text)))
        ++final_tokens_;
}

bool TextOutput::finish() {
    if (!stopped_) {
        piece_ = decoder_.flush();
        held_ += piece_;
        total_ += piece_.size();
        for (size_t i = settled_; i < pending_.size(); ++i) pending_[i].end = total_;
        settled_ = pending_.size();
        // A phrase that ends here is kept: no token can replace it any more.
        if (take_text(static_cast<int64_t>(count()) > options_.stops_from) == Next::rewind)
            stop_safe_ = total_;
        if (!stopped_) stop_safe_ += stop_.finish_count();
        stopped_ = stop_.stopped();
    }
    if (!stopped_) {
        settle(total_, true);
        return false;
    }
    settle(stop_safe_, false);
    // The token in which the stop string begins has given the text before it.
    while (final_tokens_ < pending_.size() &&
           pending_[final_tokens_].token.text_offset < static_cast<int64_t>(stop_safe_))
        ++final_tokens_;
    return true;
}

void TextOutput::release(JobEvent& event) {
    event.text.append(held_, 0, final_text_);
    held_.erase(0, final_text_);
    released_ += final_text_;
    const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(final_tokens_);
    for (auto p = pending_.begin(); p != end; ++p) event.tokens.push_back(std::move(p->token));
    pending_.erase(pending_.begin(), end);
    settled_ -= std::min(settled_, final_tokens_);
    released_tokens_ += final_tokens_;
    final_text_ = final_tokens_ = 0;
}

}  // namespace exl3
