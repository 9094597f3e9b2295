#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace exl3 {

/// The splitmix64 finalizer: a bijection of 64-bit words that mixes every bit (Steele, Lea and
/// Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
constexpr uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/// Counter-based noise: a pure function of its arguments, so results do not depend on the order
/// in which they are drawn, on threads or on neighbours in a batch.
constexpr uint64_t noise64(uint64_t seed, uint64_t a, uint64_t b = 0) {
    return mix64(mix64(mix64(seed + 0x9e3779b97f4a7c15u) + a) + b * 0x9e3779b97f4a7c15u + 1);
}

/// Uniform in (0, 1), never 0 or 1. 52 bits, because then adding a half is exact.
constexpr double to_unit(uint64_t bits) {
    return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

/// A stream of noise64 values, for loops that just need the next number.
class Random {
public:
    explicit constexpr Random(uint64_t seed) : seed_(seed) {}
    constexpr uint64_t next() { return noise64(seed_, counter_++); }
    constexpr double uniform() { return to_unit(next()); }
    /// Uniform in [0, n); n > 0. The bias is below n / 2^64.
    constexpr uint64_t below(uint64_t n) {
        return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
    constexpr bool coin() { return next() >> 63; }
    /// Standard normal (Box and Muller).
    double normal() {
        const double r = std::sqrt(-2.0 * std::log(uniform()));
        return r * std::cos(2.0 * std::numbers::pi * uniform());
    }

private:
    uint64_t seed_ = 0;
    uint64_t counter_ = 0;
};

}  // namespace exl3
