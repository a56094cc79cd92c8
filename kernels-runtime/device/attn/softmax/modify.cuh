// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Score modifiers, applied before the softmax.
#pragma once
#include "attn/mma/fragment.cuh"

namespace attn {

ATTN_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
ATTN_INLINE float abs(float x) { return fabsf(x); }
// Absolute error 2^-22: two instructions on the special function unit. (tanh.approx is one instruction with a relative
// error of 2^-11.)
ATTN_INLINE float tanh(float x) { return fmaf(-2, reciprocal(exp2(x * 2.885390082f) + 1), 1); }

// A score a * b + c whose multiplication is deferred, so that scale * score - maximum takes one FMA.
struct LinearScore {
  float a, b, c;
  ATTN_INLINE operator float() const { return fmaf(a, b, c); }
};
// A modified score and its derivative.
struct ModifiedScore {
  float score, slope;
};
// The identity modifier.
struct Unmodified {
  ATTN_INLINE float operator()(float score, int, int, int, float, int = 0) const { return score; }
};
// Applies f to a score of row r. Rows that are pairs pass the head, too.
template <class F> ATTN_INLINE auto apply(F f, float score, int first, int r, int key, int base, float column_offset) {
  return f(score, query_of(first, r), key, base, column_offset);
}
template <class F, int H>
ATTN_INLINE auto apply(F f, float score, Pairs<H> first, int r, int key, int base, float column_offset) {
  return f(score, query_of(first, r), key, base, column_offset, first.head + r % H);
}

// Each score becomes f(score, row, key, base, column_offset), where key == base + column_offset. As in apply_mask(),
// the loop over rows is outside: what depends on the row or on `base` is computed once a row, and column_offset is a
// constant.
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

// The largest magnitude of the thread's scores; a NaN counts as 0.
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
// Uses `small`, a cheaper formula for scores below `within` in size, if all scores of the warp are below it; a NaN
// counts as small. Scores are a fragment or SIMT scores.
template <class Scores, class First, class Small, class F>
ATTN_INLINE void modify(Scores &s, First q0, int k0, float within, Small small, F f) {
  if (__any_sync(~0u, largest_of(s) >= within))
    modify(s, q0, k0, f);
  else
    modify(s, q0, k0, small);
}

} // namespace attn
