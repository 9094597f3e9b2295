// The shape, dtype and aliasing rules of the ops of recurrence.h; see checks.cpp.
#include "ops/recurrence.h"

namespace exl3 {
namespace {

bool is_f32(const ConstView& v, int rank) {
    return v.data && v.dtype == DType::f32 && v.shape.rank == rank;
}
bool is_i32(const ConstView& v, int rank) {
    return v.data && v.dtype == DType::i32 && v.shape.rank == rank;
}
bool is_f32(const ConstView& v, Shape shape) {
    return is_f32(v, shape.rank) && v.shape == shape;
}
void check_slots(const SlotsView& s) {
    EXL3_CHECK(is_i32(s.q_start, 1) && is_i32(s.kv_len, 1) && is_i32(s.slots, 1));
    EXL3_CHECK(s.q_start.shape[0] == s.kv_len.shape[0] + 1 && s.slots.shape == s.kv_len.shape);
}

}  // namespace

void check(const CausalConvArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && is_f32(a.y, a.x.shape) && a.x.data != a.y.data);
    EXL3_CHECK(!a.gate_in || is_f32(a.gate_in, a.x.shape));
    EXL3_CHECK(!a.gate_out || is_f32(a.gate_out, a.x.shape));
    const int64_t channels = a.x.shape[1];
    EXL3_CHECK(is_f32(a.weight, 2) && a.weight.shape[0] >= 2 &&
               a.weight.shape[0] <= kMaxConvKernel && a.weight.shape[1] == channels);
    EXL3_CHECK(!a.bias || is_f32(a.bias, Shape{channels}));
    EXL3_CHECK(is_f32(a.window, 3) && a.window.row_stride == channels &&
               a.window.shape[1] == a.weight.shape[0] - 1 && a.window.shape[2] == channels);
    check_slots(a.seq);
}

void check(const RecurrenceGatesArgs& a) {
    EXL3_CHECK(is_f32(a.a, 2) && (!a.b || is_f32(a.b, a.a.shape)));
    EXL3_CHECK(is_f32(a.log_decay, a.a.shape) && is_f32(a.write, a.a.shape));
    EXL3_CHECK(is_f32(a.a_log, Shape{a.a.shape[1]}) && is_f32(a.step_bias, Shape{a.a.shape[1]}));
    EXL3_CHECK(a.step_min >= 0 && a.step_max >= a.step_min);
}

void check(const RecurrenceArgs& a) {
    EXL3_CHECK(is_f32(a.memory, 4) && a.memory.row_stride == a.memory.shape[3]);
    const int64_t heads = a.memory.shape[1], keys = a.memory.shape[2], values = a.memory.shape[3];
    EXL3_CHECK(a.key_heads >= 1 && heads % a.key_heads == 0);
    EXL3_CHECK(is_f32(a.v, 2));
    const int64_t tokens = a.v.shape[0];
    EXL3_CHECK(is_f32(a.v, Shape{tokens, heads * values}) && is_f32(a.y, a.v.shape));
    EXL3_CHECK(is_f32(a.q, Shape{tokens, a.key_heads * keys}) && is_f32(a.k, a.q.shape));
    EXL3_CHECK(is_f32(a.log_decay, Shape{tokens, heads}) && is_f32(a.write, Shape{tokens, heads}));
    EXL3_CHECK(!a.skip || is_f32(a.skip, Shape{heads}));
    EXL3_CHECK(a.y.data != a.v.data && a.y.data != a.q.data && a.y.data != a.k.data);
    check_slots(a.seq);
}

void check(const SplitGroupsArgs& a) {
    EXL3_CHECK(is_f32(a.x, 2) && a.groups >= 1);
    int64_t columns = 0;
    for (const View& part : a.parts) {
        if (!part) continue;
        EXL3_CHECK(is_f32(part, 2) && part.shape[0] == a.x.shape[0] &&
                   part.shape[1] % a.groups == 0 && part.data != a.x.data);
        columns += part.shape[1];
    }
    EXL3_CHECK(columns == a.x.shape[1]);
}

}  // namespace exl3
