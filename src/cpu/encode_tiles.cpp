#define EXL3_ISA_FILE "cpu/encode_tiles.cpp"
#include "cpu/isa.h"

#include <algorithm>

#include "cpu/encode_plan.h"
#include "ops/encode.h"
#include "trellis/tile.h"

#ifndef EXL3_UNROLL
#if defined(__clang__)
#define EXL3_UNROLL _Pragma("unroll")
#else
#define EXL3_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

EXL3_ISA_BEGIN

#include "cpu/encode_simd.h"

// Tiles that are searched together share every load of the codebook; their number and kVectors are
// set by the registers of the instruction set.
constexpr int kTogether = F32::width == 1 ? 1 : 2;
constexpr int kVectors = F32::width == 1 ? 1 : 4;

inline uint16_t never(uint16_t) {
    return 65535;
}
inline float never(float) {
    return 1e30f;
}

template <bool kFixed>
struct Format {
    using Vector = F32;
    using Value = float;
    using Cost = float;
};
template <>
struct Format<true> {
    using Vector = U16;
    using Value = int16_t;
    using Cost = uint16_t;
};

// How paths are remembered. Up to 3 bits every minimum carries the number of its predecessor in its
// low bits, which are kept as `bits` planes of one bit per edge (4 KiB per position at 1 and 2
// bits, 3 at 3). From 4 bits on the rows of costs are kept, at most 8 KiB per position, and the
// traceback repeats the 2^bits comparisons of the one edge that it visits.
template <int K>
struct Trellis : Format<is_fixed(K)> {
    static constexpr int edges = 65536 >> K, fan = 1 << K, low = edges >> K;
    static constexpr bool tags = K <= 3;
    static constexpr int plane = edges / 8, planes = tags ? K * plane : 0;  // bytes per position
    static constexpr int rows = tags ? 2 : kTileSize + 1;
    static constexpr int64_t bytes =
        rows * edges * sizeof(typename Format<is_fixed(K)>::Cost) + kTileSize * planes;
};

// The memory of one tile.
template <int K>
struct Scratch {
    using Cost = typename Trellis<K>::Cost;
    Scratch() = default;
    explicit Scratch(uint8_t* memory)
        : rows(reinterpret_cast<Cost*>(memory)),
          planes(memory + Trellis<K>::rows * Trellis<K>::edges * sizeof(Cost)) {}
    // Costs before position i; those of the lead, i < 0, take turns in two rows.
    Cost* row(int i) const {
        return rows + (Trellis<K>::tags || i < 0 ? i & 1 : i) * Trellis<K>::edges;
    }
    uint8_t* planes_at(int i) const { return planes + i * Trellis<K>::planes; }

    Cost* rows = nullptr;
    uint8_t* planes = nullptr;
};

// The cheapest ways to the edges that predecessors [p, p + width), of any k, reach by `symbol`.
template <int K, bool kTag>
inline void search_symbol(const int16_t* v, const uint16_t* const* in, int p, const U16* w,
                          U16 (*best)[Trellis<K>::fan], int symbol) {
    using T = Trellis<K>;
    const U16 keep = U16::set(kTag ? -T::fan : -1);
    U16 m[kTogether];
    EXL3_UNROLL
    for (int k = 0; k < T::fan; ++k) {
        const U16 value = U16::load(v + k * U16::width);
        EXL3_UNROLL
        for (int t = 0; t < kTogether; ++t) {
            const U16 before = U16::load(in[t] + k * T::low + p);
            const U16 cost = extend(value, w[t], before, keep, U16::set(kTag ? k : 0));
            m[t] = k == 0 ? cost : min(m[t], cost);
        }
    }
    EXL3_UNROLL
    for (int t = 0; t < kTogether; ++t) best[t][symbol] = m[t];
}

// One position in fixed point: for each edge the cheapest of its 2^K predecessors. Lanes are
// consecutive predecessors; a symbol takes them to edges 2^K apart, which K rounds of zip bring
// into order.
template <int K, bool kTag>
void step(const int16_t* v, const uint16_t* const* in, uint16_t* const* out, const int16_t* target,
          uint8_t* const* planes) {
    using T = Trellis<K>;
    const U16 keep = U16::set(kTag ? -T::fan : -1);
    U16 w[kTogether];
    EXL3_UNROLL
    for (int t = 0; t < kTogether; ++t) w[t] = U16::set(target[t]);

    for (int p = 0; p < T::low; p += U16::width) {
        U16 best[kTogether][T::fan];
        if constexpr (K <= 2) {
            EXL3_UNROLL
            for (int symbol = 0; symbol < T::fan; ++symbol, v += T::fan * U16::width)
                search_symbol<K, kTag>(v, in, p, w, best, symbol);
        } else {
            for (int symbol = 0; symbol < T::fan; ++symbol, v += T::fan * U16::width)
                search_symbol<K, kTag>(v, in, p, w, best, symbol);
        }
        EXL3_UNROLL
        for (int t = 0; t < kTogether; ++t) {
            U16 a[T::fan], b[T::fan];
            EXL3_UNROLL
            for (int j = 0; j < T::fan; ++j) a[j] = best[t][j];
            EXL3_UNROLL
            for (int round = 0; round < K; ++round) {
                EXL3_UNROLL
                for (int j = 0; j < T::fan / 2; ++j) {
                    b[2 * j] = a[j];
                    b[2 * j + 1] = a[j + T::fan / 2];
                    zip(b[2 * j], b[2 * j + 1]);
                }
                EXL3_UNROLL
                for (int j = 0; j < T::fan; ++j) a[j] = b[j];
            }
            EXL3_UNROLL
            for (int j = 0; j < T::fan; ++j) {
                const int edge = p * T::fan + j * U16::width;
                (kTag ? a[j] & keep : a[j]).store(out[t] + edge);
                EXL3_UNROLL
                for (int bit = 0; bit < (kTag ? K : 0); ++bit)
                    store_bits(a[j], bit, planes[t] + bit * T::plane, edge);
            }
        }
    }
}

// One position in f32. Lanes are consecutive edges, which share their predecessors.
template <int K, bool kTag>
void step(const float* v, const float* const* in, float* const* out, const float* target,
          uint8_t* const*) {
    using T = Trellis<K>;
    F32 w[kTogether];
    EXL3_UNROLL
    for (int t = 0; t < kTogether; ++t) w[t] = F32::set(target[t]);

    for (int e = 0; e < T::edges; e += kVectors * F32::width) {
        F32 best[kTogether][kVectors];
        EXL3_UNROLL
        for (int t = 0; t < kTogether; ++t) EXL3_UNROLL
        for (int b = 0; b < kVectors; ++b) best[t][b] = F32::set(never(0.0f));
        for (int k = 0; k < T::fan; ++k) {
            EXL3_UNROLL
            for (int b = 0; b < kVectors; ++b, v += F32::width) {
                const F32 value = F32::load(v);
                const int from = k * T::low + ((e + b * F32::width) >> K);
                EXL3_UNROLL
                for (int t = 0; t < kTogether; ++t) {
                    const F32 d = value - w[t];
                    best[t][b] = min_positive(best[t][b], fma(d, d, F32::set(in[t][from])));
                }
            }
        }
        EXL3_UNROLL
        for (int t = 0; t < kTogether; ++t) EXL3_UNROLL
        for (int b = 0; b < kVectors; ++b) best[t][b].store(out[t] + e + b * F32::width);
    }
}

// The number k of the predecessor that gave the minimum at `edge`.
template <int K>
inline int predecessor(int edge, const uint8_t* planes) {
    int k = 0;
    for (int b = 0; b < K; ++b)
        k |= ((planes[b * Trellis<K>::plane + edge / 8] >> (edge % 8)) & 1) << b;
    return k;
}
template <int K>
inline int predecessor(int edge, const int16_t* trace, int16_t target, const uint16_t* row) {
    using T = Trellis<K>;
    int best = 65536, at = 0;
    for (int k = 0; k < T::fan; ++k) {
        int d = trace[edge * T::fan + k] - target;
        d = d > 32767 ? 32767 : d < -32768 ? -32768 : d;
        const int cost = ((d * d + 0x4000) >> 15) + row[k * T::low + (edge >> K)];
        at = cost < best ? k : at;
        best = cost < best ? cost : best;
    }
    return at;
}
template <int K>
inline int predecessor(int edge, const float* trace, float target, const float* row) {
    using T = Trellis<K>;
    alignas(64) float before[T::fan];
    for (int k = 0; k < T::fan; ++k) before[k] = row[k * T::low + (edge >> K)];
    F32 best = F32::set(never(0.0f));
    const F32 w = F32::set(target);
    for (int k = 0; k < T::fan; k += F32::width) {
        const F32 d = F32::load(trace + edge * T::fan + k) - w;
        best = min_positive(best, tag_lanes(fma(d, d, F32::load(before + k)), K, k));
    }
    alignas(64) float lanes[F32::width];
    best.store(lanes);
    float m = lanes[0];
    for (const float x : lanes) m = x < m ? x : m;
    uint32_t bits;
    std::memcpy(&bits, &m, sizeof bits);
    return static_cast<int>(bits & (T::fan - 1));
}

template <typename Vector, typename Cost>
inline Cost smallest(const Cost* row, int count) {
    Vector low = Vector::load(row);
    for (int e = Vector::width; e < count; e += Vector::width)
        low = min(low, Vector::load(row + e));
    alignas(64) Cost lanes[Vector::width];
    low.store(lanes);
    Cost m = lanes[0];
    for (const Cost x : lanes) m = x < m ? x : m;
    return m;
}
inline F32 reduce(F32 a, F32 b) {
    return a - b;
}
template <int K>
inline int cheapest(const typename Trellis<K>::Cost* row) {
    constexpr int kChunk = 256;
    int chunk = 0;
    auto best = smallest<typename Trellis<K>::Vector>(row, kChunk);
    for (int e = kChunk; e < Trellis<K>::edges; e += kChunk) {
        const auto m = smallest<typename Trellis<K>::Vector>(row + e, kChunk);
        if (m < best) {
            best = m;
            chunk = e;
        }
    }
    while (row[chunk] != best) ++chunk;
    return chunk;
}

// A group of tiles in search.
template <int K>
struct Search {
    using T = Trellis<K>;
    using Vector = typename T::Vector;
    using Value = typename T::Value;
    using Cost = typename T::Cost;

    Search(const EncodeTilesArgs& args, const EncodeTables& t, uint8_t* memory)
        : a(args),
          stream(static_cast<const Value*>(t.stream)),
          trace_table(static_cast<const Value*>(t.trace)) {
        const float range = fixed_range(args.codebook, K);
        limit = is_fixed(K) ? fixed_limit(args.codebook) : kMaxTarget;
        scale = is_fixed(K) ? 32767 / range : 1;
        for (int i = 0; i < kTogether; ++i) scratch[i] = Scratch<K>(memory + i * T::bytes);
    }

    void take(int slot, int64_t tile) {
        const float* x = a.target.row<float>(tile);
        for (int p = 0; p < kTileSize; ++p) {
            float w = clamp_target(x[p]);
            w = (w > limit ? limit : w < -limit ? -limit : w) * scale;
            if constexpr (is_fixed(K)) w = std::nearbyint(w);
            target[slot][p] = static_cast<Value>(w);
        }
    }

    // Positions [begin, end), taken modulo 256.
    template <bool kTag>
    void run(int begin, int end) {
        // 16-bit costs are brought down every eight positions, or at every one where they grow by
        // more than an eighth of what the spread between paths leaves free.
        constexpr int kOften = 8;
        constexpr float kMuch = is_fixed(K) ? 3000 : 1e30f;
        int next[kTogether], interval[kTogether];
        for (int t = 0; t < kTogether; ++t) {
            next[t] = begin;
            interval[t] = 0;
        }
        for (int i = begin; i < end; ++i) {
            Value w[kTogether];
            const Cost* in[kTogether];
            Cost* out[kTogether];
            uint8_t* planes[kTogether];
            for (int t = 0; t < kTogether; ++t) {
                if (i == next[t]) {
                    const float growth = renormalize(scratch[t].row(i));
                    const bool calm = growth < kMuch * static_cast<float>(interval[t]);
                    interval[t] = calm ? kOften : 1;
                    next[t] += interval[t];
                }
                w[t] = target[t][i & (kTileSize - 1)];
                in[t] = scratch[t].row(i);
                out[t] = scratch[t].row(i + 1);
                planes[t] = scratch[t].planes_at(i);
            }
            step<K, kTag>(stream, in, out, w, planes);
        }
    }

    // Subtracts the smallest cost of a row, so that what the tile has cost so far takes no
    // precision from the differences between paths. Clears the bits of tags.
    // @return what it subtracted
    float renormalize(Cost* row) {
        const Cost smallest_cost = smallest<Vector>(row, T::edges);
        const Vector low = Vector::set(smallest_cost);
        for (int e = 0; e < T::edges; e += Vector::width) {
            Vector cost = reduce(Vector::load(row + e), low);
            if constexpr (T::tags) cost = cost & Vector::set(-T::fan);
            cost.store(row + e);
        }
        return smallest_cost;
    }

    // The symbols of the cheapest path that leaves position 255 along `edge`.
    // @return the edge before position 0 on that path
    int trace(int t, int edge, uint8_t* symbols) const {
        for (int p = kTileSize - 1; p >= 0; --p) {
            int k = 0;
            if constexpr (T::tags)
                k = predecessor<K>(edge, scratch[t].planes_at(p));
            else
                k = predecessor<K>(edge, trace_table, target[t][p], scratch[t].row(p));
            symbols[p] = static_cast<uint8_t>(edge & (T::fan - 1));
            edge = (k << (16 - K) | edge) >> K;
        }
        return edge;
    }

    // Any ring of symbols is a valid tile; the states are its windows of 16 bits.
    void write(int64_t tile, const uint8_t* symbols) const {
        uint32_t s = 0;
        for (int p = kTileSize - 16; p < kTileSize; ++p) s = s << K | symbols[p];
        for (int p = 0; p < kTileSize; ++p) {
            s = (s << K | symbols[p]) & 0xffff;
            a.states.row<uint16_t>(tile)[p] = static_cast<uint16_t>(s);
        }
    }

    // Searches from before the seam, so that the costs at position 0 know the ring's other end. All
    // survivors come from one edge there unless they have not merged in 256 positions, and the path
    // that also ends in that edge closes the ring: it is the cheapest of those through that edge.
    // @return per tile that edge if its ring stayed open, else -1
    void search_free(const int64_t* tiles, int* seam) {
        constexpr int kTries = 4;
        for (int t = 0; t < kTogether; ++t) {
            Cost* row = scratch[t].row(-lead_positions(K));
            for (int e = 0; e < T::edges; ++e) row[e] = 0;
        }
        run<false>(-lead_positions(K), 0);
        run<T::tags>(0, kTileSize);
        for (int t = 0; t < kTogether; ++t) {
            uint8_t symbols[kTileSize];
            int end = cheapest<K>(scratch[t].row(kTileSize));
            int start = trace(t, end, symbols);
            for (int i = 0; i < kTries && start != end; ++i) {
                end = start;
                start = trace(t, end, symbols);
            }
            if (start == end) write(tiles[t], symbols);
            seam[t] = start == end ? -1 : start;
        }
    }

    // Searches among the paths that start and end with the edge `seam`.
    void search_closed(const int64_t* tiles, const int* seam) {
        for (int t = 0; t < kTogether; ++t) {
            Cost* row = scratch[t].row(0);
            for (int e = 0; e < T::edges; ++e) row[e] = never(Cost{});
            row[seam[t]] = 0;
        }
        run<T::tags>(0, kTileSize);
        for (int t = 0; t < kTogether; ++t) {
            uint8_t symbols[kTileSize];
            trace(t, seam[t], symbols);
            write(tiles[t], symbols);
        }
    }

    const EncodeTilesArgs& a;
    const Value* stream;
    const Value* trace_table;
    float limit, scale;
    Scratch<K> scratch[kTogether];
    Value target[kTogether][kTileSize];
};

template <int K>
void encode(const EncodeTilesArgs& a, const EncodeTables& tables, uint8_t* memory, int64_t begin,
            int64_t end) {
    Search<K> search(a, tables, memory);
    // Tiles whose ring stayed open wait until a group is full.
    int64_t open[kTogether];
    int open_seam[kTogether], opened = 0;
    const auto close = [&] {
        for (int t = opened; t < kTogether; ++t) {
            open[t] = open[0];
            open_seam[t] = open_seam[0];
        }
        for (int t = 0; t < kTogether; ++t) search.take(t, open[t]);
        search.search_closed(open, open_seam);
        opened = 0;
    };
    for (int64_t i = begin; i < end; i += kTogether) {
        int64_t tiles[kTogether];
        int seam[kTogether];
        for (int t = 0; t < kTogether; ++t) {
            tiles[t] = i + t < end ? i + t : end - 1;  // a short last group repeats a tile
            search.take(t, tiles[t]);
        }
        search.search_free(tiles, seam);
        for (int t = 0; t < kTogether && i + t < end; ++t)
            if (seam[t] >= 0) {
                open[opened] = tiles[t];
                open_seam[opened++] = seam[t];
                if (opened == kTogether) close();
            }
    }
    if (opened > 0) close();
}

template <int K>
inline Encoder encoder_of() {
    return {is_fixed(K) ? U16::width : F32::width, kVectors, kTogether,
            kTogether * Trellis<K>::bytes, encode<K>};
}
inline Encoder encoder(int bits) {
    switch (bits) {
        case 1: return encoder_of<1>();
        case 2: return encoder_of<2>();
        case 3: return encoder_of<3>();
        case 4: return encoder_of<4>();
        case 5: return encoder_of<5>();
        case 6: return encoder_of<6>();
        case 7: return encoder_of<7>();
        default: return encoder_of<8>();
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void encode_tiles(Stream& s, const EncodeTilesArgs& a) {
    const auto scope = s.workspace().scope();
    const Encoder encoder = EXL3_ISA_PICK(s, encoder)(a.bits);
    ThreadPool& pool = pool_of(s);

    const DType value = is_fixed(a.bits) ? DType::i16 : DType::f32;
    const EncodeTables tables{.bits = a.bits,
                              .width = encoder.width,
                              .vectors = encoder.vectors,
                              .stream = s.workspace().take(value, {65536}).data,
                              .trace = s.workspace().take(value, {65536}).data};
    pool.parallel_for(65536, 4096, [&](int64_t b, int64_t e) {
        fill_tables(tables, a.codebook, static_cast<int>(b), static_cast<int>(e));
    });

    // One share of the tiles per thread, cut at whole groups. A tile's path does not depend on its
    // group, so neither does it on the number of threads.
    const int64_t tiles = a.target.shape[0];
    const int64_t groups = (tiles + encoder.together - 1) / encoder.together;
    const int64_t shares = std::min<int64_t>(pool.threads(), groups);
    uint8_t* scratch = s.workspace().take(DType::u8, {shares, encoder.scratch_bytes}).as<uint8_t>();
    pool.parallel_for(shares, 1, [&](int64_t share, int64_t) {
        const int64_t begin = groups * share / shares * encoder.together;
        const int64_t end = std::min(tiles, groups * (share + 1) / shares * encoder.together);
        encoder.encode(a, tables, scratch + share * encoder.scratch_bytes, begin, end);
        if (!a.values) return;
        for (int64_t i = begin; i < end; ++i)
            for (int p = 0; p < kTileSize; ++p)
                a.values.row<float>(i)[p] =
                    to_float(decode_state(a.states.row<uint16_t>(i)[p], a.codebook));
    });
}

}  // namespace exl3::cpu
#endif
