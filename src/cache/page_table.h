#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ops/attention.h"

namespace exl3 {

/// Names the contents of a page together with everything before it: two pages of one name hold the
/// same tokens after the same tokens.
using PageName = std::array<uint64_t, 2>;

/// The name that stands before the first page. @param salt  everything besides the tokens that
/// changes keys and values, or must keep texts apart
PageName root_name(std::string_view salt);
/// The name of a page of kPageTokens tokens that follows `before`.
PageName page_name(const PageName& before, std::span<const int32_t> tokens);

/// Who uses which page of a paged cache, and what the others still hold. Host bookkeeping only: no
/// tensors. Not thread-safe. Nothing allocates after construction; every member but
/// find_beginning() takes constant time.
///
/// A page is empty, being filled (it has a name, but its contents come with the pass that is being
/// planned), full (named, never written again, shared by any number of jobs), or a beginning (fewer
/// tokens than a page holds; nobody's, to be copied from).
///
/// Pages that nobody uses are given up in the order in which they were released. Who releases the
/// pages of a sequence back to front (as release_all does) makes that order a good one: a page goes
/// before those it follows, because whoever uses a page also uses its predecessors.
class PageTable {
public:
    static constexpr int kNone = -1;
    explicit PageTable(int pages);

    /// The page of that name, full or being filled; kNone.
    int find(const PageName& name) const;
    bool full(int page) const { return at(page).state == State::full; }

    struct Beginning {
        int page = kNone;
        int tokens = 0;  ///< how many of the wanted tokens it holds from its start
    };
    /// The page after `before` that holds the longest beginning of `tokens`.
    Beginning find_beginning(const PageName& before, std::span<const int32_t> tokens) const;

    /// One more user of a page.
    void share(int page);
    /// A page to write to, with one user; what it held is lost. kNone: all are in use.
    int take();
    /// Empties a page that has one user, who goes on with it.
    void clear(int page);
    /// One user less. The contents stay until the page is taken.
    void release(int page);
    /// Releases the pages of a sequence, the last one first.
    void release_all(std::span<const int> pages);

    /// Gives a page that its only user is about to fill a name to be found by.
    void begin_fill(int page, const PageName& name);
    /// The contents did not come: the page is empty again. The caller remains its user.
    void drop_fill(int page);
    /// The page holds all its tokens. Returns the page to go on with: another one, now shared, if
    /// one of that name was full already; then this one is released.
    int finish_fill(int page, const PageName& before, const PageName& name,
                    std::span<const int32_t> tokens);
    /// Releases a page that holds a beginning, so that others can copy it.
    void release_beginning(int page, const PageName& before, std::span<const int32_t> tokens);

    int pages() const { return static_cast<int>(pages_.size()); }
    int in_use() const { return in_use_; }
    int available() const { return pages() - in_use_; }
    int users(int page) const { return at(page).users; }
    int cached() const { return cached_; }  ///< pages of no user that hold something
    int64_t evictions() const { return evictions_; }

    /// Aborts if the books do not balance. For tests: takes time.
    void audit() const;

private:
    enum class State : uint8_t { empty, filling, full, beginning };
    struct Page {
        State state = State::empty;
        int users = 0;
        PageName name{}, before{};
        int tokens = 0;                    ///< held, in tokens_
        int older = kNone, newer = kNone;  ///< neighbours in the order of giving up
        int next_named = kNone;            ///< chain of a bucket
        int next_after = kNone;            ///< the same, by predecessor
    };
    const Page& at(int page) const { return pages_[static_cast<size_t>(page)]; }
    Page& at(int page) { return pages_[static_cast<size_t>(page)]; }
    size_t bucket(const PageName& name) const { return name[0] & (named_.size() - 1); }
    std::span<int32_t> tokens(int page) {
        return {tokens_.data() + static_cast<size_t>(page) * kPageTokens, kPageTokens};
    }
    void enqueue(int page, bool first);
    void dequeue(int page);
    void link(std::vector<int>& heads, int Page::*next, const PageName& key, int page);
    void unlink(std::vector<int>& heads, int Page::*next, const PageName& key, int page);
    void forget(int page);

    std::vector<Page> pages_;
    std::vector<int32_t> tokens_;     ///< (pages, kPageTokens)
    std::vector<int> named_, after_;  ///< hash buckets by name and by predecessor: first page
    int oldest_ = kNone, newest_ = kNone;
    int in_use_ = 0, cached_ = 0;
    int64_t evictions_ = 0;
};

}  // namespace exl3
