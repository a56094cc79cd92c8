// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of scores with dropout. The sign bit of a probability marks a dropped pair (dropout_in_sign).
#pragma once
#include "attn/backward/grad_scores.cuh"
#include "attn/softmax/dropout.cuh"

namespace attn {

// Reads a probability from a fragment, an operand or a stash.
template <int R, int N, int W> ATTN_INLINE float probability_at(const Frag<R, N, W> &p, int m, int n, int i) {
  return p.v[m][n][i];
}
template <template <class, int, int, int> class Place, class T, int R, int N, int W>
ATTN_INLINE float probability_at(Place<T, R, N, W> &p, int m, int n, int i) {
  const unsigned pair = pair_of(p, m, n, i);
  return i % 2 ? high_half<T>(pair) : low_half<T>(pair);
}
// Sets dropped probabilities to 0.
template <int R, int N, int W> ATTN_INLINE void clear_dropped(Frag<R, N, W> &p) {
#pragma unroll
  for (int m = 0; m < p.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < p.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        p.v[m][n][i] = __float_as_int(p.v[m][n][i]) < 0 ? 0 : p.v[m][n][i];
}
template <class T> ATTN_INLINE unsigned max_with_zero(unsigned pair);
template <> ATTN_INLINE unsigned max_with_zero<bf16>(unsigned pair) {
  unsigned d;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(pair), "r"(0));
  return d;
}
template <> ATTN_INLINE unsigned max_with_zero<fp16>(unsigned pair) {
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
        p.v[m][k][i] = max_with_zero<T>(p.v[m][k][i]);
}

// x becomes weight * (x * factor - delta), without the first term where p is marked as dropped; p becomes 0 there.
// `weight` returns the weight of an element whose probability is given.
template <bool Transposed, int R, int N, int W, class P, int K, class Weight>
ATTN_INLINE void dropout_grad_scores_with(Frag<R, N, W> &x, P &p, const RowStatistics<K> &stats, float factor,
                                          Weight weight) {
  with_row_statistics<Transposed>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) {
        const float probability = probability_at(p, m, n, i),
                    kept_factor = __float_as_int(probability) < 0 ? 0 : factor;
        x.v[m][n][i] = weight(m, n, i, probability) * fmaf(x.v[m][n][i], kept_factor, -delta);
      });
  clear_dropped(p);
}
template <bool Transposed, int R, int N, int W, class P, class Weighted, int K>
ATTN_INLINE void dropout_grad_scores(Frag<R, N, W> &x, P &p, Weighted &weighted, const RowStatistics<K> &stats,
                                     float factor) {
  dropout_grad_scores_with<Transposed>(x, p, stats, factor,
                                       [&](int m, int n, int i, float) { return probability_at(weighted, m, n, i); });
}
template <bool Transposed, int R, int N, int W, class P, int K>
ATTN_INLINE void dropout_grad_scores(Frag<R, N, W> &x, P &p, const RowStatistics<K> &stats, float factor) {
  dropout_grad_scores_with<Transposed>(x, p, stats, factor,
                                       [](int, int, int, float probability) { return fabsf(probability); });
}

} // namespace attn
