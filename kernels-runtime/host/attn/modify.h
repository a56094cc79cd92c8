// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Score modifiers, applied before the softmax.
#pragma once

#include "attn/fragment.h"

namespace attn {

// Two operations if there is no FMA unit, instead of a call of libm.
ATTN_HELPER float fma(float a, float b, float c) { return a * b + c; }
ATTN_HELPER float abs(float x) { return __builtin_fabsf(x); }

// Absolute error about 2e-7. From 10 on the result is 1 in float32; the argument of exp2 is clamped, since its result
// must be finite.
ATTN_HELPER float tanh(float x) {
  const float bounded = x > 10.f ? 10.f : x < -10.f ? -10.f : x;
  return 1.f - 2.f / (exp2(bounded * 2.885390082f) + 1.f);
}

// A score a * b + c whose multiplication is deferred.
struct LinearScore {
  float a, b, c;
  operator float() const { return a * b + c; }
};
// A modified score and its derivative.
struct ModifiedScore {
  float score, slope;
};
// Applies f to a score of row r. Rows that are pairs pass the head, too.
template <class F> ATTN_HELPER auto apply(F f, float score, int first, int r, int key) {
  return f(score, query_of(first, r), key, key, 0.f);
}
template <class F, int H> ATTN_HELPER auto apply(F f, float score, Pairs<H> first, int r, int key) {
  return f(score, query_of(first, r), key, key, 0.f, first.head + r % H);
}

// Each score becomes f(score, row, key, base, column_offset), where key == base + column_offset. On GPUs, where
// column_offset is a constant, this saves conversions; here rows are in the vector lanes, and each key is its own
// `base`.
template <int M, int N, int W, class First, class F>
ATTN_TILE_OP void modify(Frag<M, N, W> &scores, First q0, int k0, F f) {
  const int live = scores.live;
  for (int n = 0; n < N; ++n) {
    float *__restrict s = scores.data + n * M;
#pragma omp simd
    for (int r = 0; r < live; ++r)
      s[r] = apply(f, s[r], q0, r, k0 + n);
  }
}

// Uses `small`, a cheaper formula for scores below `within`, if all scores of the tile are below it.
template <int M, int N, int W, class First, class Small, class F>
ATTN_TILE_OP void modify(Frag<M, N, W> &scores, First q0, int k0, float within, Small small, F f) {
  float largest = 0.f;
  for (int n = 0; n < N; ++n)
#pragma omp simd reduction(max : largest)
    for (int r = 0; r < scores.live; ++r)
      largest = max(largest, abs(scores.data[n * M + r]));
  if (largest >= within)
    modify(scores, q0, k0, f);
  else
    modify(scores, q0, k0, small);
}

} // namespace attn
