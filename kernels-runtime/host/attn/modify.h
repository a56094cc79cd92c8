// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What problems ask to be done to scores before the softmax.
#pragma once

#include "attn/places.h"

namespace attn {

// Without an FMA unit it is two operations, and not a call of libm.
ATTN_HELPER float fma(float a, float b, float c) { return a * b + c; }
ATTN_HELPER float abs(float x) { return __builtin_fabsf(x); }

// Right to about 2e-7, absolutely. From 10 on it is 1 in fp32; what exp2 gets
// is bounded, since its result must be a number.
ATTN_HELPER float tanh(float x) {
  const float bounded = x > 10.f ? 10.f : x < -10.f ? -10.f : x;
  return 1.f - 2.f / (exp2(bounded * 2.885390082f) + 1.f);
}

// A score a * b + c that is yet to be multiplied.
struct Linear {
  float a, b, c;
  operator float() const { return a * b + c; }
};
// A modified score and its derivative.
struct Changed {
  float score, slope;
};
// What f makes of a score of row r. Of pairs it gets the head, too.
template <class F> ATTN_HELPER auto apply(F f, float score, int first, int r, int key) {
  return f(score, query_of(first, r), key, key, 0.f);
}
template <class F, int H> ATTN_HELPER auto apply(F f, float score, Pairs<H> first, int r, int key) {
  return f(score, query_of(first, r), key, key, 0.f, first.head + r % H);
}

// Each score becomes f(score, row, key, base, ahead), key == base + ahead. On
// GPUs, where `ahead` is a constant, that saves conversions; here rows are in
// the lanes, and a key has one `base`.
template <int M, int N, int W, class First, class F>
ATTN_VERB void modify(Frag<M, N, W> &scores, First q0, int k0, F f) {
  const int live = scores.live;
  for (int n = 0; n < N; ++n) {
    float *__restrict s = scores.data + n * M;
#pragma omp simd
    for (int r = 0; r < live; ++r)
      s[r] = apply(f, s[r], q0, r, k0 + n);
  }
}

// The same with a formula for scores below `within`, which is right where all
// of the tile's are.
template <int M, int N, int W, class First, class Small, class F>
ATTN_VERB void modify(Frag<M, N, W> &scores, First q0, int k0, float within, Small small, F f) {
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
