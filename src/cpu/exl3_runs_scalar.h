// Runs one state at a time: the fallback of every machine. No include guard and no namespace: the
// kernel files include this inside the tier's namespace.

/// State `t` of the run in `lane`: the 16 bits that end before bit (t + 1) K.
template <int K>
inline uint32_t run_state(const uint32_t* words, int lane, int t) {
    const int end = (t + 1) * K, word = (end - 1) / 32, shift = (word + 1) * 32 - end;
    // A tile is a ring: run 7 comes before run 0.
    const int before = word == 0 ? (K - 1) * kRunLanes + (lane & 8) + ((lane + 7) & 7)
                                 : (word - 1) * kRunLanes + lane;
    const uint64_t both = uint64_t{words[before]} << 32 | words[word * kRunLanes + lane];
    return static_cast<uint32_t>(both >> shift) & 0xffff;
}
