// Elementary functions of F32. No include guard and no namespace: each simd_*.h includes this
// inside its own namespace and target region. The polynomials are weighted minimax fits (Lawson's
// iteration) made for this file; the errors stated are of the polynomials, in relative terms.

/// e^r = 1 + r + r^2 p(r) on |r| <= ln 2 / 2, to 3.1e-9: returns r + r^2 p(r).
inline F32 exp_minus_1_core(F32 r) {
    F32 p = F32::set(0.001381443114951253f);
    p = fma(p, r, F32::set(0.008368796668946743f));
    p = fma(p, r, F32::set(0.041668396443128586f));
    p = fma(p, r, F32::set(0.1666651964187622f));
    p = fma(p, r, F32::set(0.4999999403953552f));
    return fma(p, r * r, r);
}

/// n = the integer nearest to x / ln 2; returns x - n ln 2. ln 2 is split so that n * high is
/// exact.
inline F32 reduce_ln2(F32 x, F32* n) {
    *n = round(x * F32::set(1.44269504088896341f));
    const F32 r = fma(*n, F32::set(-0.693359375f), x);
    return fma(*n, F32::set(2.12194440e-4f), r);
}

/// e^x. 0 below -87.3, where results would be subnormal; infinite above 88.3 on some tiers and 88.7
/// on others; NaN stays NaN.
inline F32 exp(F32 x) {
    F32 n;
    // The constant comes first: of two operands, one NaN, x86 returns the second.
    const F32 r = reduce_ln2(max(F32::set(-87.3f), min(F32::set(89.0f), x)), &n);
    const F32 e = scale2(F32::set(1) + exp_minus_1_core(r), n);
    return select_le(x, F32::set(-87.3f), F32::set(0), e);
}

/// tanh x = q / (q + 2), q = e^2x - 1 without the cancellation at 0.
inline F32 tanh(F32 x) {
    F32 n;
    // tanh 10 is 1 in f32.
    const F32 r = reduce_ln2(max(F32::set(-20.0f), min(F32::set(20.0f), x + x)), &n);
    const F32 one = scale2(F32::set(1), n);
    const F32 q = fma(exp_minus_1_core(r), one, one - F32::set(1));
    return q / (q + F32::set(2));
}
