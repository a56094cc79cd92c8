// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The online softmax in two halves, so that a product into the accumulator may run under the first one.
#pragma once
#include "attn/softmax.cuh"
#include "attn/wgmma.cuh"

namespace attn {

// Raises the running maxima, turns scores into probabilities and adds them to the sums. What that means for the accumulator stays with the rows
// until rescale(). Needs scale > 0.
template <int R, int N, int W> ATTN_INLINE void softmax(Frag<R, N, W> &s, Rows<R, W> &row, float scale) {
  constexpr int rows = R / W / 8;
  float top[rows];
  row.grew = largest(top, s, row, scale);
  if (row.grew) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      // A row moves only if it grew itself: its bits depend on no other row of the warp, such as one behind its sequence's end.
      const float before = row.max[i], now = quad_max(top[i]);
      row.max[i] = now > before + kSlack ? now : before;
      row.shrink[i] = exp2(before - row.max[i]);
      row.sum[i] *= row.shrink[i];
    }
  }
  exponentiate(s, row, scale);
}

// The other half: the accumulator follows the maxima.
template <int R, int C, int W> ATTN_INLINE void rescale(Frag<R, C, W> &acc, const Rows<R, W> &row) {
  if (row.grew) {
#pragma unroll
    for (int i = 0; i < 2 * acc.Blocks; ++i)
#pragma unroll
      for (int n = 0; n < acc.Pieces; ++n) acc.v[i / 2][n][i % 2 * 2] *= row.shrink[i], acc.v[i / 2][n][i % 2 * 2 + 1] *= row.shrink[i];
  }
}

// Probabilities as the left operand of the product with V. NOTE: not before the product that reads the ones before is over, and so not before `s` is settled.
template <class T, int R, int N, int W> ATTN_INLINE void round(Held<T, R, N, W> &p, Frag<R, N, W> &s) {
  settle(s);
#pragma unroll
  for (int k = 0; k < N; k += 16) pack_depth<T>(p.v[0][k / 16], s, 0, k);
}

}  // namespace attn
