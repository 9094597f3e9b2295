#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace exl3 {

/// Finds where the end of a sequence occurred before, to guess that it goes on as it did there.
/// Adding and taking back a token takes constant time, and adding allocates only to grow.
class NgramIndex {
public:
    struct Options {
        int least = 3;          ///< tokens that must agree at least; positive
        bool frequent = false;  ///< of equally long agreements, the continuation that came most
                                ///< often instead of the latest one
    };
    /// @param expected  length the sequence will reach: up to there nothing allocates
    explicit NgramIndex(const Options& options, size_t expected = 0)
        : options_(options), expected_(expected) {}

    /// Brings the index up to date with a sequence that is as before up to size(), or shorter.
    void follow(std::span<const int32_t> sequence);
    /// Forgets what lies past the first `tokens`.
    void truncate(std::span<const int32_t> sequence, size_t tokens);
    size_t size() const { return older_.size(); }

    /// Appends what followed the best earlier occurrence of the end of `sequence`, at most `most`
    /// tokens, to `out`. The index must be up to date.
    void propose(std::span<const int32_t> sequence, size_t most, std::vector<int32_t>& out) const;

private:
    size_t bucket(std::span<const int32_t> sequence, size_t end) const;
    size_t agreement(std::span<const int32_t> sequence, size_t end) const;
    void grow(std::span<const int32_t> sequence);

    Options options_;
    size_t expected_;
    std::vector<int32_t> newest_;  ///< per bucket: end of the latest n-gram, -1 if none
    std::vector<int32_t> older_;   ///< per end: the one before in its bucket
};

}  // namespace exl3
