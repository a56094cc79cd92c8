// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single-pass (not online) softmax for one CTA per sequence: all keys are in one tile, so the softmax state is complete
// before the product with V, whose columns may be computed in parts. There are many CTAs of a few microseconds each, so
// their time depends on the number of instructions and registers.
#pragma once
#include "attn/mma/mma.cuh"
#include "attn/softmax/softmax.cuh"

namespace attn {

// Scores of complete rows become probabilities; their per-lane sums may include a sink and are reduced by
// reduce_row_sums(). Needs a positive scale.
template <int R, int N, int W> ATTN_INLINE void softmax(Frag<R, N, W> &s, SoftmaxState<R, W> &row, float scale) {
  float top[R / W / 8], rescale_factor[R / W / 8];
  bool moves[R / W / 8];
  lane_max(top, s);
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    moves[i] = true;
  quad_maxima(top, row);
  if (is_unscaled(row, top, scale)) {
    float at[R / W / 8];
    raise_unscaled_references(rescale_factor, at, s, row, top, moves, scale);
    return exponentiate(s, row, at, scale);
  }
  raise_references(rescale_factor, row, top, moves, scale);
  exponentiate(s, row, row.max, scale);
}

// normalize() in two steps: sums once, and a division for each part of the columns.
template <int R, int W> ATTN_INLINE void reduce_row_sums(SoftmaxState<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * row.Blocks; ++i)
    row.sum[i] = quad_sum(row.sum[i]);
}
template <int R, int C, int W> ATTN_INLINE void divide(Frag<R, C, W> &acc, const SoftmaxState<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const float factor = row.sum[i] == 0 ? 0 : reciprocal(row.sum[i]);
    scale_row(acc, i, factor);
  }
}

// Converts probabilities to the left operand of products, once for all parts of the columns.
template <class T, int R, int N, int W>
ATTN_INLINE void convert(RegisterOperand<T, R, N, W> &p, const Frag<R, N, W> &s) {
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N; k += 16)
      pack_depth<T>(p.v[m][k / 16], s, m, k);
}
template <class T, int R, int N, int C, int P, int W>
ATTN_INLINE void mma_ab(Frag<R, C, W> &acc, const RegisterOperand<T, R, N, W> &p, const Smem<T, N, C, P> &V) {
#pragma unroll
  for (int k = 0; k < N; k += 16) {
    unsigned a[R / W / 16][4];
#pragma unroll
    for (int m = 0; m < acc.Blocks; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[m][i] = p.v[m][k / 16][i];
    mma_depth(acc, a, V, k);
  }
}

} // namespace attn
