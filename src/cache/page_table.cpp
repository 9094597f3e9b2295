#include "cache/page_table.h"

#include <algorithm>
#include <bit>

#include "base/blake2b.h"

namespace exl3 {

PageName root_name(std::string_view salt) {
    Blake2b128 hash;
    hash.update(std::as_bytes(std::span(salt)));
    return hash.finish();
}

PageName page_name(const PageName& before, std::span<const int32_t> tokens) {
    EXL3_CHECK(tokens.size() == kPageTokens);
    Blake2b128 hash;
    hash.update(std::as_bytes(std::span(before)));
    hash.update(std::as_bytes(tokens));
    return hash.finish();
}

PageTable::PageTable(int pages)
    : pages_(static_cast<size_t>(pages)),
      tokens_(static_cast<size_t>(pages) * kPageTokens),
      named_(std::bit_ceil(2 * static_cast<size_t>(pages) + 1), kNone),
      after_(named_.size(), kNone) {
    for (int p = 0; p < pages; ++p) enqueue(p, false);
}

// ---- The order of giving up, and the two hash tables; all are chains through the pages.

void PageTable::enqueue(int page, bool first) {
    Page& p = at(page);
    p.older = first ? kNone : newest_;
    p.newer = first ? oldest_ : kNone;
    (p.older == kNone ? oldest_ : at(p.older).newer) = page;
    (p.newer == kNone ? newest_ : at(p.newer).older) = page;
}

void PageTable::dequeue(int page) {
    const Page& p = at(page);
    (p.older == kNone ? oldest_ : at(p.older).newer) = p.newer;
    (p.newer == kNone ? newest_ : at(p.newer).older) = p.older;
}

void PageTable::link(std::vector<int>& heads, int Page::*next, const PageName& key, int page) {
    int& head = heads[bucket(key)];
    at(page).*next = head;
    head = page;
}

void PageTable::unlink(std::vector<int>& heads, int Page::*next, const PageName& key, int page) {
    int* link = &heads[bucket(key)];
    while (*link != page) link = &(at(*link).*next);
    *link = at(page).*next;
}

// The page loses its contents and its place in the tables.
void PageTable::forget(int page) {
    Page& p = at(page);
    if (p.state == State::full || p.state == State::filling)
        unlink(named_, &Page::next_named, p.name, page);
    if (p.state == State::full || p.state == State::beginning)
        unlink(after_, &Page::next_after, p.before, page);
    p.state = State::empty;
    p.tokens = 0;
}

// ---- Finding

int PageTable::find(const PageName& name) const {
    int page = named_[bucket(name)];
    while (page != kNone && at(page).name != name) page = at(page).next_named;
    return page;
}

PageTable::Beginning PageTable::find_beginning(const PageName& before,
                                               std::span<const int32_t> tokens) const {
    Beginning best;
    for (int page = after_[bucket(before)]; page != kNone; page = at(page).next_after) {
        if (at(page).before != before) continue;
        const int32_t* held = tokens_.data() + static_cast<size_t>(page) * kPageTokens;
        const auto most = std::min(static_cast<size_t>(at(page).tokens), tokens.size());
        const auto differ = std::mismatch(held, held + most, tokens.begin());
        const auto common = static_cast<int>(differ.first - held);
        if (common > best.tokens) best = {page, common};
    }
    return best;
}

// ---- Users

void PageTable::share(int page) {
    if (at(page).users++ != 0) return;
    dequeue(page);
    ++in_use_;
    if (at(page).state != State::empty) --cached_;
}

int PageTable::take() {
    const int page = oldest_;
    if (page == kNone) return kNone;
    if (at(page).state != State::empty) ++evictions_;
    share(page);
    forget(page);
    return page;
}

void PageTable::clear(int page) {
    EXL3_CHECK(at(page).users == 1);
    if (at(page).state != State::empty) ++evictions_;
    forget(page);
}

void PageTable::release(int page) {
    EXL3_CHECK(at(page).users > 0);
    if (--at(page).users != 0) return;
    EXL3_CHECK(at(page).state != State::filling);
    const bool empty = at(page).state == State::empty;
    enqueue(page, empty);
    --in_use_;
    if (!empty) ++cached_;
}

void PageTable::release_all(std::span<const int> pages) {
    for (size_t i = pages.size(); i-- > 0;) release(pages[i]);
}

// ---- Contents

void PageTable::begin_fill(int page, const PageName& name) {
    Page& p = at(page);
    EXL3_CHECK(p.state == State::empty && p.users == 1);
    p.state = State::filling;
    p.name = name;
    link(named_, &Page::next_named, name, page);
}

void PageTable::drop_fill(int page) {
    EXL3_CHECK(at(page).state == State::filling);
    forget(page);
}

int PageTable::finish_fill(int page, const PageName& before, const PageName& name,
                           std::span<const int32_t> tokens) {
    EXL3_CHECK(tokens.size() == kPageTokens && !full(page));
    forget(page);
    const int same = find(name);
    if (same != kNone && full(same)) {
        share(same);
        release(page);
        return same;
    }
    Page& p = at(page);
    p.state = State::full;
    p.name = name;
    p.before = before;
    p.tokens = kPageTokens;
    std::copy(tokens.begin(), tokens.end(), this->tokens(page).begin());
    link(named_, &Page::next_named, name, page);
    link(after_, &Page::next_after, before, page);
    return page;
}

void PageTable::release_beginning(int page, const PageName& before,
                                  std::span<const int32_t> tokens) {
    Page& p = at(page);
    EXL3_CHECK(p.state == State::empty && p.users == 1 && tokens.size() < kPageTokens);
    if (!tokens.empty()) {
        p.state = State::beginning;
        p.before = before;
        p.tokens = static_cast<int>(tokens.size());
        std::copy(tokens.begin(), tokens.end(), this->tokens(page).begin());
        link(after_, &Page::next_after, before, page);
    }
    release(page);
}

void PageTable::audit() const {
    int used = 0, cached = 0, queued = 0, named = 0, after = 0;
    for (const Page& p : pages_) {
        used += p.users > 0 ? 1 : 0;
        cached += p.users == 0 && p.state != State::empty ? 1 : 0;
        named += p.state == State::full || p.state == State::filling ? 1 : 0;
        after += p.state == State::full || p.state == State::beginning ? 1 : 0;
        EXL3_CHECK(p.users >= 0 &&
                   (p.state == State::empty) == (p.tokens == 0 && p.state != State::filling));
    }
    for (int page = oldest_; page != kNone; page = at(page).newer, ++queued)
        EXL3_CHECK(at(page).users == 0 && queued <= pages());
    for (const int head : named_)
        for (int page = head; page != kNone; page = at(page).next_named) --named;
    for (const int head : after_)
        for (int page = head; page != kNone; page = at(page).next_after) --after;
    EXL3_CHECK(used == in_use_ && cached == cached_ && queued == available());
    EXL3_CHECK(named == 0 && after == 0);
}

}  // namespace exl3
