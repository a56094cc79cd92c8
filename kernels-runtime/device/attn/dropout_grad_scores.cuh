// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of scores with dropout.
#pragma once
#include "attn/backward.cuh"
#include "attn/dropout.cuh"

namespace attn {

// Reads a probability from a fragment or an operand, and clears probabilities whose sign bit marks them as dropped.
template <int R, int N, int W> ATTN_INLINE float probability_at(const Frag<R, N, W> &p, int m, int n, int i) {
  return p.v[m][n][i];
}
template <template <class, int, int, int> class Place, class T, int R, int N, int W>
ATTN_INLINE float probability_at(Place<T, R, N, W> &p, int m, int n, int i) {
  const unsigned pair = pair_of(p, m, n, i);
  return i % 2 ? high_half<T>(pair) : low_half<T>(pair);
}
template <int R, int N, int W> ATTN_INLINE void clear_dropped(Frag<R, N, W> &p) {
#pragma unroll
  for (int m = 0; m < p.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < p.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        p.v[m][n][i] = __float_as_int(p.v[m][n][i]) < 0 ? 0 : p.v[m][n][i];
}
template <class T> ATTN_INLINE unsigned positive(unsigned pair);
template <> ATTN_INLINE unsigned positive<bf16>(unsigned pair) {
  unsigned d;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(pair), "r"(0));
  return d;
}
template <> ATTN_INLINE unsigned positive<fp16>(unsigned pair) {
  unsigned d;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(pair), "r"(0));
  return d;
}
template <class T, int R, int N, int W> ATTN_INLINE void clear_dropped(RegisterOperand<T, R, N, W> &p) {
#pragma unroll
  for (int m = 0; m < p.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        p.v[m][k][i] = positive<T>(p.v[m][k][i]);
}

// x becomes |weight| * (x * factor - delta), without the first term where p is marked as dropped; p becomes 0 there.
template <bool Transposed, int R, int N, int W, class P, class WeightedSlope, int K>
ATTN_INLINE void dropout_grad_scores(Frag<R, N, W> &x, P &p, WeightedSlope &weighted, const RowStatistics<K> &stats,
                                     float factor) {
  with_row_statistics<Transposed>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) {
        const float kept_factor = __float_as_int(probability_at(p, m, n, i)) < 0 ? 0 : factor;
        x.v[m][n][i] = probability_at(weighted, m, n, i) * fmaf(x.v[m][n][i], kept_factor, -delta);
      });
  clear_dropped(p);
}
template <bool Transposed, int R, int N, int W, class P, int K>
ATTN_INLINE void dropout_grad_scores(Frag<R, N, W> &x, P &p, const RowStatistics<K> &stats, float factor) {
  with_row_statistics<Transposed>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) {
        const float weight = probability_at(p, m, n, i), kept_factor = __float_as_int(weight) < 0 ? 0 : factor;
        x.v[m][n][i] = fabsf(weight) * fmaf(x.v[m][n][i], kept_factor, -delta);
      });
  clear_dropped(p);
}

} // namespace attn
