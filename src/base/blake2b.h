#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace exl3 {

/// BLAKE2b (RFC 7693) with a digest of 16 bytes and no key: names contents so that two that differ
/// never share a name, even when someone tries.
class Blake2b128 {
public:
    Blake2b128();
    void update(std::span<const std::byte> bytes);
    /// The digest, as two little-endian words. The object must then not be used again.
    std::array<uint64_t, 2> finish();

private:
    void compress(bool last);
    std::array<uint64_t, 8> h_;
    std::array<uint8_t, 128> block_{};
    size_t used_ = 0;     ///< bytes of block_
    uint64_t bytes_ = 0;  ///< compressed so far, those of the running block included
};

}  // namespace exl3
