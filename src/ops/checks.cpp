// The shape, dtype and aliasing rules of every op. A failure here is a bug of ours: files are
// compared with the model's spec when they load.
#include "ops/kv_group.h"
#include "ops/ops.h"
#include "trellis/hadamard.h"
#include "trellis/tile.h"

namespace exl3 {
namespace {

bool is_f32(const ConstView& v, int rank) {
    return v.data && v.dtype == DType::f32 && v.shape.rank == rank;
}
bool is_float(const ConstView& v) {
    return v.data && (v.dtype == DType::f32 || v.dtype == DType::f16 || v.dtype == DType::bf16);
}
bool is_i32(const ConstView& v, int rank) {
    return v.data && v.dtype == DType::i32 && v.shape.rank == rank;
}
bool is_vector(const ConstView& v, int64_t n) {
    return is_float(v) && v.shape.rank == 1 && v.shape[0] >= n;
}
void check_seq(const SequencesView& s, int64_t tokens) {
    EXL3_CHECK(is_i32(s.q_start, 1) && is_i32(s.kv_len, 1) && is_i32(s.pages, 2));
    EXL3_CHECK(s.q_start.shape[0] == s.kv_len.shape[0] + 1 &&
               s.pages.shape[0] == s.kv_len.shape[0] && tokens >= 0);
}
void check_kv(const View& data, const View& scale, int64_t kv_heads, int64_t dim) {
    EXL3_CHECK(data.data && data.shape.rank == 4 && data.shape[1] == kPageTokens &&
               data.shape[2] == kv_heads);
    if (!scale) {
        EXL3_CHECK(data.dtype == DType::f16 && data.shape[3] == dim);
        return;
    }
    EXL3_CHECK(data.dtype == DType::u32 && scale.dtype == DType::f16 && dim % kKvGroup == 0);
    EXL3_CHECK(scale.shape == Shape({data.shape[0], kPageTokens, kv_heads, dim / kKvGroup}));
    const int bits = kv_bits_of(data, scale, dim);
    EXL3_CHECK(bits < 16 && is_kv_bits(bits) && data.shape[3] == dim / kKvGroup * bits);
}
void check_groups(const RowGroups& g, const ConstView& matrices, int parts, const ConstView& x,
                  const ConstView& y) {
    EXL3_CHECK(is_i32(g.start, 1) && g.start.shape[0] >= 2);
    EXL3_CHECK(g.source ? is_i32(g.source, 1) && g.source.shape[0] == y.shape[0]
                        : x.shape[0] == y.shape[0]);
    EXL3_CHECK(matrices.data && matrices.dtype == DType::u64 &&
               matrices.shape == Shape({g.start.shape[0] - 1, parts}));
}
void check_packed(const ConstView& p, int bits) {
    EXL3_CHECK(bits >= 1 && bits <= 8);
    EXL3_CHECK(p.data && p.dtype == DType::i16 && p.shape.rank == 3 &&
               p.shape[2] == tile_words(bits) && p.row_stride == p.shape[2]);
    EXL3_CHECK(p.shape[0] % (kHadamard / kTile) == 0 && p.shape[1] % (kHadamard / kTile) == 0);
}

}  // namespace

void check(const EmbedArgs& a) {
    EXL3_CHECK(is_i32(a.tokens, 1) && is_float(a.table) && a.table.shape.rank == 2);
    EXL3_CHECK(is_f32(a.y, 2) && a.y.shape[0] == a.tokens.shape[0] &&
               a.y.shape[1] == a.table.shape[1]);
}

void check(const RmsNormArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.shape == a.y.shape && a.eps > 0);
    EXL3_CHECK(!a.weight || (is_float(a.weight) && a.weight.shape.rank >= 1 &&
                             a.weight.shape.rank <= 2 && a.weight.shape[-1] == a.x.shape[1]));
}

void check(const LayerNormArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.shape == a.y.shape && a.eps > 0);
    EXL3_CHECK(is_float(a.weight) && a.weight.shape.rank >= 1 && a.weight.shape.rank <= 2 &&
               a.weight.shape[-1] == a.x.shape[1]);
    EXL3_CHECK(!a.bias || (is_vector(a.bias, 0) && a.bias.shape[0] == a.x.shape[1]));
}

void check(const RopeArgs& a) {
    EXL3_CHECK(is_f32(a.x, 3) && a.x.row_stride == a.x.shape[2]);
    EXL3_CHECK(is_i32(a.positions, 1) && a.positions.shape[0] == a.x.shape[0]);
    EXL3_CHECK(is_f32(a.inv_freq, 1) && 2 * a.inv_freq.shape[0] <= a.x.shape[2]);
}

void check(const KvAppendArgs& a) {
    EXL3_CHECK(is_f32(a.k, 3) && is_f32(a.v, 3) && a.k.shape == a.v.shape);
    check_seq(a.seq, a.k.shape[0]);
    check_kv(a.cache.k, a.cache.k_scale, a.k.shape[1], a.k.shape[2]);
    check_kv(a.cache.v, a.cache.v_scale, a.k.shape[1], a.k.shape[2]);
}

void check(const AttentionArgs& a) {
    EXL3_CHECK(is_f32(a.q, 3) && is_f32(a.y, 3) && a.q.shape == a.y.shape);
    EXL3_CHECK(a.q.data != a.y.data);
    check_seq(a.seq, a.q.shape[0]);
    const int64_t kv_heads = a.cache.kv_heads();
    check_kv(a.cache.k, a.cache.k_scale, kv_heads, a.q.shape[2]);
    check_kv(a.cache.v, a.cache.v_scale, kv_heads, a.q.shape[2]);
    EXL3_CHECK(a.cache.k.shape[0] == a.cache.v.shape[0] && a.q.shape[1] % kv_heads == 0);
    EXL3_CHECK(!a.sinks || (is_f32(a.sinks, 1) && a.sinks.shape[0] == a.q.shape[1]));
    EXL3_CHECK(a.window >= 0 && a.softcap >= 0);
}

void check(const GatedActArgs& a) {
    EXL3_CHECK(is_f32(a.gate, 2) && is_f32(a.y, 2) && a.gate.shape == a.y.shape);
    EXL3_CHECK(!a.up || (is_f32(a.up, 2) && a.up.shape == a.y.shape));
    EXL3_CHECK(a.limit >= 0 && (a.act != Act::oai || a.up));
}

void check(const AddArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.shape == a.y.shape);
}

void check(const SoftcapArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && a.cap > 0);
}

void check(const LinearArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.shape[0] == a.y.shape[0]);
    EXL3_CHECK(is_float(a.weight) && a.weight.shape.rank == 2 &&
               a.weight.shape[0] == a.y.shape[1] && a.weight.shape[1] == a.x.shape[1]);
    EXL3_CHECK(!a.bias || is_vector(a.bias, a.y.shape[1]));
}

void check(const HeadLinearArgs& a) {
    EXL3_CHECK(is_f32(a.x, 3) && is_f32(a.y, 3) && a.x.shape[0] == a.y.shape[0]);
    EXL3_CHECK(is_float(a.weight) && a.weight.row_stride == a.weight.shape[-1] &&
               a.weight.shape == Shape({a.x.shape[1], a.y.shape[2], a.x.shape[2]}));
    EXL3_CHECK(a.y.shape[1] == a.x.shape[1] && a.x.data != a.y.data);
}

void check(const RouteArgs& a) {
    const int64_t rows = a.logits.shape[0], experts = a.logits.shape[1];
    EXL3_CHECK(is_f32(a.logits, 2) && is_f32(a.weight, 2) && is_i32(a.chosen, 2));
    EXL3_CHECK(a.chosen.shape == a.weight.shape && a.chosen.shape[0] == rows);
    EXL3_CHECK(a.chosen.shape[1] >= 1 && a.chosen.shape[1] <= experts);
    EXL3_CHECK(!a.bias || (is_f32(a.bias, 1) && a.bias.shape[0] == experts));
    EXL3_CHECK(!a.expert_scale ||
               (is_f32(a.expert_scale, 1) && a.expert_scale.shape[0] == experts));
    EXL3_CHECK(a.groups >= 1 && experts % a.groups == 0 && a.groups_kept >= 1 &&
               a.groups_kept <= a.groups);
}

void check(const GroupRowsArgs& a) {
    EXL3_CHECK(is_i32(a.chosen, 2) && is_i32(a.start, 1) && a.start.shape[0] >= 2);
    EXL3_CHECK(is_i32(a.source, 1) && a.source.shape[0] == a.chosen.shape.numel());
    EXL3_CHECK(is_i32(a.slot, 2) && a.slot.shape == a.chosen.shape);
}

void check(const GroupedLinearArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.data != a.y.data);
    check_groups(a.groups, a.matrices, 2, a.x, a.y);
    EXL3_CHECK(a.dtype == DType::f32 || a.dtype == DType::f16 || a.dtype == DType::bf16);
}

void check(const GroupedExl3LinearArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.data != a.y.data);
    check_groups(a.groups, a.matrices, 4, a.x, a.y);
    EXL3_CHECK(a.bits >= 1 && a.bits <= 8 && a.k % kHadamard == 0 && a.n % kHadamard == 0);
    EXL3_CHECK(a.x.shape[1] <= a.k && a.y.shape[1] <= a.n);
}

void check(const CombineRowsArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.shape[1] == a.y.shape[1]);
    EXL3_CHECK(is_i32(a.slot, 2) && is_f32(a.weight, 2) && a.slot.shape == a.weight.shape &&
               a.slot.shape[0] == a.y.shape[0] && a.x.data != a.y.data);
}

void check(const HeadGateArgs& a) {
    EXL3_CHECK(is_f32(a.x, 3) && is_f32(a.gate, 3) && a.gate.shape[0] == a.x.shape[0] &&
               a.gate.shape[1] == a.x.shape[1]);
    EXL3_CHECK(a.gate.shape[2] == 1 || a.gate.shape[2] == a.x.shape[2]);
}

void check(const Exl3RepackArgs& a) {
    check_packed(a.trellis, a.bits);
    check_packed(a.packed, a.bits);
    EXL3_CHECK(a.trellis.shape == a.packed.shape && a.trellis.data != a.packed.data);
}

void check(const Exl3LinearArgs& a) {
    check_packed(a.packed, a.bits);
    const int64_t k = a.packed.shape[0] * kTile, n = a.packed.shape[1] * kTile;
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, 2) && a.x.shape[0] == a.y.shape[0]);
    EXL3_CHECK(a.x.shape[1] <= k && a.y.shape[1] <= n && a.x.data != a.y.data);
    EXL3_CHECK(a.suh.dtype == DType::f16 && a.suh.shape == Shape({k}));
    EXL3_CHECK(a.svh.dtype == DType::f16 && a.svh.shape == Shape({n}));
    EXL3_CHECK(!a.bias || is_vector(a.bias, a.y.shape[1]));
}

void check(const Exl3DecodeArgs& a) {
    check_packed(a.packed, a.bits);
    EXL3_CHECK(a.y.data && (a.y.dtype == DType::f32 || a.y.dtype == DType::f16) &&
               a.y.shape == Shape({a.packed.shape[0] * kTile, a.packed.shape[1] * kTile}));
}

void check(const GemmArgs& a) {
    EXL3_CHECK(is_f32(a.a, 2) && is_f32(a.b, 2) && is_f32(a.c, 2));
    const int64_t m = a.a.shape[a.transpose_a ? 1 : 0], k = a.a.shape[a.transpose_a ? 0 : 1];
    EXL3_CHECK(a.c.shape[0] == m && a.b.shape[a.transpose_b ? 1 : 0] == k &&
               a.c.shape[1] == a.b.shape[a.transpose_b ? 0 : 1]);
    EXL3_CHECK(a.c.data != a.a.data && a.c.data != a.b.data);
}

void check(const NextTokenArgs& a) {
    EXL3_CHECK(is_f32(a.logits, 2) && a.logits.shape[1] > 0);
    const Shape each = {a.logits.shape[0]};
    for (const View& v : {a.tokens, a.positions, a.kv_len})
        EXL3_CHECK(is_i32(v, 1) && v.shape == each);
    EXL3_CHECK(is_i32(a.log, 2) && a.log.shape[0] > 0 && a.log.shape[1] == each[0]);
}

void check(const HadamardArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && a.x.shape[a.columns ? 0 : 1] % kHadamard == 0);
}

void check(const EncodeTilesArgs& a) {
    EXL3_CHECK(a.bits >= 1 && a.bits <= 8);
    EXL3_CHECK(is_f32(a.target, 2) && a.target.shape[1] == kTileSize);
    EXL3_CHECK(a.states.data && a.states.dtype == DType::u16 && a.states.shape == a.target.shape);
    EXL3_CHECK(!a.values || (is_f32(a.values, 2) && a.values.shape == a.target.shape));
}

}  // namespace exl3
