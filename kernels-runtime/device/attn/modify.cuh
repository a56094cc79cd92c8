// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What problems ask to be done to scores before the softmax.
#pragma once
#include "attn/fragment.cuh"

namespace attn {

ATTN_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
ATTN_INLINE float abs(float x) { return fabsf(x); }
// Right to 2^-22, absolutely: two instructions on the unit for exponentials. (Its own tanh is one, and right to 2^-11,
// relatively.)
ATTN_INLINE float tanh(float x) { return fmaf(-2, reciprocal(exp2(x * 2.885390082f) + 1), 1); }

// A score a * b + c that is yet to be multiplied: whoever needs scale * score - maximum has it in one instruction.
struct Linear {
  float a, b, c;
  ATTN_INLINE operator float() const { return fmaf(a, b, c); }
};
// A modified score and its derivative.
struct Changed {
  float score, slope;
};
// A score as it is.
struct Unmodified {
  ATTN_INLINE float operator()(float score, int, int, int, float, int = 0) const { return score; }
};
// What f makes of a score of row r. Of pairs it gets the head, too.
template <class F> ATTN_INLINE auto apply(F f, float score, int first, int r, int key, int base, float ahead) {
  return f(score, query_of(first, r), key, base, ahead);
}
template <class F, int H>
ATTN_INLINE auto apply(F f, float score, Pairs<H> first, int r, int key, int base, float ahead) {
  return f(score, query_of(first, r), key, base, ahead, first.head + r % H);
}

// Each score becomes f(score, row, key, base, ahead), key == base + ahead. As in keep(), rows are outside, so that what
// depends on the row alone is worked out once a row; so is what depends on `base`, and `ahead` is a constant.
template <int R, int N, int W, class First, class F> ATTN_INLINE void modify(Frag<R, N, W> &s, First q0, int k0, F f) {
#pragma unroll
  for (int i = 0; i < 2 * s.Blocks; ++i) {
    const int r = s.row(i), base = k0 + s.col(0);
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        x = apply(f, x, q0, r, base + n * 8 + c, base, float(n * 8 + c));
      }
  }
}

// The largest size of a score of the thread; that of a NaN is 0.
template <int R, int N, int W> ATTN_INLINE float largest_of(const Frag<R, N, W> &s) {
  float largest[2] = {};
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        largest[i / 2] = max(largest[i / 2], abs(s.v[m][n][i]));
  return max(largest[0], largest[1]);
}
// The same with a formula for scores below `within`, which is right where all of the warp's are; a NaN counts as small.
template <int R, int N, int W, class First, class Small, class F>
ATTN_INLINE void modify(Frag<R, N, W> &s, First q0, int k0, float within, Small small, F f) {
  if (__any_sync(~0u, largest_of(s) >= within))
    modify(s, q0, k0, f);
  else
    modify(s, q0, k0, small);
}

} // namespace attn
