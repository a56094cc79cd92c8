// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Online softmax in base 2, and the division at its end.
#pragma once
#include "attn/copy.cuh"

namespace attn {

// How far a row's maximum may grow before sums and outputs are rescaled. Probabilities then reach 2^8, harmless in fp32 sums and exact as powers
// of two in bf16 and fp16, and after the first tiles hardly any row triggers it: neither the quad's exchange nor the
// multiplication of the whole accumulator is paid for.
constexpr float kSlack = 8;

ATTN_INLINE float quad_max(float x) {
  x = max(x, __shfl_xor_sync(~0u, x, 1));
  return max(x, __shfl_xor_sync(~0u, x, 2));
}
ATTN_INLINE float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// What f says of the head of row r, which of pairs it gets.
template <class F> ATTN_INLINE float sink_of(F f, int, int) { return f(); }
template <int H, class F> ATTN_INLINE float sink_of(F f, Pairs<H> first, int r) { return f(first.head + r % H); }

// A negative scale moves its sign into Q, so that softmax_step() may take the largest product for the largest score and find a masked score at -inf.
// Ends with a barrier of the block.
template <class T, int R, int C, int P> ATTN_INLINE void negate(const Smem<T, R, C, P> &Q) {
  const Walk<Smem<T, R, C, P>> walk;
#pragma unroll 1
  for (int pass = 0; pass < walk.Passes; ++pass)
    if (walk.has(pass)) {
      uint4 &x = chunk_at(Q.at(walk.row + pass * walk.Step, walk.chunk * 8));
      x = {x.x ^ 0x80008000, x.y ^ 0x80008000, x.z ^ 0x80008000, x.w ^ 0x80008000};
    }
  __syncthreads();
}

// The lane's share of each row's largest score, scaled (which needs scale > 0). Is one of the warp's by more than the slack above its row's maximum?
template <int R, int N, int W> ATTN_INLINE bool largest(float (&top)[R / W / 8], const Frag<R, N, W> &s, const Rows<R, W> &row, float scale) {
  bool grew = false;
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    top[i] = -infinity();
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n) top[i] = max(top[i], max(s.v[i / 2][n][i % 2 * 2], s.v[i / 2][n][i % 2 * 2 + 1]));
    top[i] *= scale;
    grew |= top[i] > row.max[i] + kSlack;
  }
  return __any_sync(~0u, grew);
}

// Scores become probabilities, relative to their rows' maxima, and join the sums.
template <int R, int N, int W> ATTN_INLINE void exponentiate(Frag<R, N, W> &s, Rows<R, W> &row, float scale) {
#pragma unroll
  for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
    for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float &x = s.v[m][n][i];
        x = exp2(fmaf(x, scale, -row.max[2 * m + i / 2]));
        row.sum[2 * m + i / 2] += x;
      }
}

// Needs scale > 0.
template <int R, int N, int C, int W>
ATTN_INLINE void softmax_step(Frag<R, N, W> &s, Rows<R, W> &row, Frag<R, C, W> &acc, float scale) {
  constexpr int rows = R / W / 8;
  float top[rows];
  if (largest(top, s, row, scale)) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const float before = row.max[i];
      row.max[i] = max(before, quad_max(top[i]));
      const float shrink = exp2(before - row.max[i]);
      row.sum[i] *= shrink;
#pragma unroll
      for (int n = 0; n < acc.Pieces; ++n) acc.v[i / 2][n][i % 2 * 2] *= shrink, acc.v[i / 2][n][i % 2 * 2 + 1] *= shrink;
    }
  }
  exponentiate(s, row, scale);
}

// ln(sum of exp(score)) of a row that saw a key: `max` is in base 2, `sum` relative to it.
ATTN_INLINE float log_sum_exp(float max, float sum) { return (max + log2(sum)) * 0.693147180559945f; }

// A key without a value: its score, in natural units, joins the row's maximum and sum. Lanes of a quad share out a row's sum, so one of them has it. It may be
// 2^32 times the weight of the row's maximum: a sink far above all scores, if it is the first of keys, would else make float16 of probabilities lose their bits.
template <int R, int C, int W, class First, class F> ATTN_INLINE void add_sink(Frag<R, C, W> &acc, Rows<R, W> &row, First first, F f) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const float score = sink_of(f, first, row.row(i)) * 1.442695041f, before = row.max[i];
    row.max[i] = max(before, score - 32);
    const float shrink = exp2(before - row.max[i]), own = exp2(score - row.max[i]);
    row.sum[i] = fmaf(row.sum[i], shrink, lane_index() % 4 == 0 ? own : 0);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n) acc.v[i / 2][n][i % 2 * 2] *= shrink, acc.v[i / 2][n][i % 2 * 2 + 1] *= shrink;
  }
}

// acc / sum; a row that saw no key has sum 0 and gives 0. Completes row's sums over the quad, which store_lse() relies on.
template <int R, int C, int W> ATTN_INLINE void normalize(Frag<R, C, W> &acc, Rows<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    row.sum[i] = quad_sum(row.sum[i]);
    const float factor = row.sum[i] == 0 ? 0 : reciprocal(row.sum[i]);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n) acc.v[i / 2][n][i % 2 * 2] *= factor, acc.v[i / 2][n][i % 2 * 2 + 1] *= factor;
  }
}

}  // namespace attn
