#define EXL3_ISA_FILE "cpu/rope.cpp"
#include "cpu/isa.h"

#include "ops/rope.h"

EXL3_ISA_BEGIN

// cos and sin of angles in f64, to about 1e-7. pi / 2 is subtracted in three parts, the first two
// of 26 bits: exact up to angles of 2e8. The rest are minimax polynomials on |r| <= pi / 4 (sin to
// 3.6e-9, cos to 1e-10). Plain loops without calls or branches, which compilers vectorise.
inline void rope_sincos(double angle, float* cosine, float* sine) {
    // Adding 1.5 * 2^52 rounds to an integer, which then fills the low bits.
    const double shifted = angle * 0.6366197723675814 + 6755399441055744.0;
    const double n = shifted - 6755399441055744.0;
    int64_t quadrant;
    std::memcpy(&quadrant, &shifted, sizeof quadrant);
    const auto r = static_cast<float>(((angle - n * 0x1.921fb5p+0) - n * 0x1.110b46p-26) -
                                      n * 0x1.1a62633145c07p-54);
    const float z = r * r;
    const float s = r + r * z *
                            (-0.16666655242443085f +
                             z * (0.008332177996635437f + z * -0.00019517233886290342f));
    const float c =
        1 - 0.5f * z +
        z * z *
            (0.04166664555668831f + z * (-0.0013887366512790322f + z * 2.4438377295155078e-05f));
    const float first = quadrant & 1 ? s : c, second = quadrant & 1 ? c : s;
    *cosine = (quadrant + 1) & 2 ? -first : first;
    *sine = quadrant & 2 ? -second : second;
}

// (x[i], x[i + half]) for i < half.
inline void rope_halves(float* x, const float* c, const float* s, int64_t half) {
    for (int64_t i = 0; i < half; i += F32::width) {
        const int64_t some = lesser(F32::width, half - i);
        const F32 u = F32::load(x + i, some), v = F32::load(x + half + i, some);
        const F32 cosine = F32::load(c + i, some), sine = F32::load(s + i, some);
        (u * cosine - v * sine).store(x + i, some);
        fma(u, sine, v * cosine).store(x + half + i, some);
    }
}

// (x[2i], x[2i + 1]); c and s hold each value twice, s with the signs -, +.
inline void rope_pairs(float* x, const float* c, const float* s, int64_t count) {
    if constexpr (F32::width == 1) {
        for (int64_t i = 0; i < count; i += 2) {
            const float u = x[i], v = x[i + 1];
            x[i] = u * c[i] + v * s[i];
            x[i + 1] = v * c[i] + u * s[i + 1];
        }
    } else {
        for (int64_t i = 0; i < count; i += F32::width) {
            const int64_t some = lesser(F32::width, count - i);
            const F32 v = F32::load(x + i, some);
            fma(v, F32::load(c + i, some), swap_pairs(v) * F32::load(s + i, some))
                .store(x + i, some);
        }
    }
}

// All heads of one token. `table` holds 2 * head_dim floats.
void rope_token(const RopeArgs& a, int64_t token, float* table) {
    const int64_t heads = a.x.shape[1], dim = a.x.shape[2], half = a.inv_freq.shape[0];
    const double position = a.positions.as<int32_t>()[token];
    const bool pairs = a.style == RopeStyle::gptj;
    float scale = 1;
    if (a.query_scale_beta != 0)
        scale = static_cast<float>(1 + a.query_scale_beta *
                                           std::log1p(std::floor(position / a.query_scale_length)));
    const float factor = a.attention_factor * scale;
    float* c = table;
    float* s = table + dim;
    for (int64_t i = 0; i < half; ++i)
        rope_sincos(position * a.inv_freq.as<float>()[i], c + i, s + i);
    for (int64_t i = half - 1; i >= 0; --i) {
        const float cosine = c[i] * factor, sine = s[i] * factor;
        if (pairs) {
            c[2 * i] = c[2 * i + 1] = cosine;
            s[2 * i] = -sine;
            s[2 * i + 1] = sine;
        } else {
            c[i] = cosine;
            s[i] = sine;
        }
    }
    for (int64_t h = 0; h < heads; ++h) {
        float* x = a.x.row<float>(token * heads + h);
        if (pairs)
            rope_pairs(x, c, s, 2 * half);
        else
            rope_halves(x, c, s, half);
        if (scale != 1)
            for (int64_t i = 2 * half; i < dim; ++i) x[i] *= scale;
    }
}

EXL3_ISA_END

#if EXL3_ISA_LAST
namespace exl3::cpu {

void rope(Stream& s, const RopeArgs& a) {
    const auto rotate = EXL3_ISA_PICK(s, rope_token);
    const int64_t tokens = a.x.shape[0], dim = a.x.shape[2];
    const auto scope = s.workspace().scope();
    const int64_t grain = 8192 / (a.x.shape[1] * dim) + 1, pieces = (tokens + grain - 1) / grain;
    const View tables = s.workspace().take(DType::f32, {pieces, 2 * dim});
    pool_of(s).parallel_for(tokens, grain, [&](int64_t token, int64_t end) {
        float* table = tables.row<float>(token / grain);
        for (; token < end; ++token) rotate(a, token, table);
    });
}

}  // namespace exl3::cpu
#endif
