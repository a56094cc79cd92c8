// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of score-modifier arrays and sinks: tiles of dS are accumulated and reduced per array entry, and another
// kernel adds the partial results.
#pragma once
#include "attn/mma/fragment.cuh"
#include "attn/softmax/softmax.cuh"

namespace attn {

template <int R, int N, int W> ATTN_INLINE void accumulate(Frag<R, N, W> &acc, const Frag<R, N, W> &grad) {
#pragma unroll
  for (int m = 0; m < acc.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        acc.v[m][n][i] += grad.v[m][n][i];
}

template <int R, int N, int W> ATTN_INLINE void store_row_sums(float *to, const Frag<R, N, W> &acc) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      sum += acc.v[i / 2][n][i % 2 * 2] + acc.v[i / 2][n][i % 2 * 2 + 1];
    sum = quad_sum(sum);
    if (lane_index() % 4 == 0)
      to[acc.row(i)] = sum;
  }
}

template <int R, int N, int W>
ATTN_INLINE void store_corner(float *to, long long stride, int rows, int cols, const Frag<R, N, W> &acc) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i)
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c)
        if (acc.row(i) < rows && acc.col(n) + c < cols)
          to[acc.row(i) * stride + acc.col(n) + c] = acc.v[i / 2][n][i % 2 * 2 + c];
}

// The sums of diagonals -N to N - 1, those below 0 to `to` and the others to to + pitch. The tile passes through shared
// memory, and each thread sums one diagonal at a time.
template <int N, int W, class T, int R, int C, int P>
ATTN_INLINE void store_diagonal_sums(float *to, long long pitch, const Frag<N, N, W> &acc,
                                     const Smem<T, R, C, P> &place) {
  static_assert(R * P * 2 >= N * N * 4);
  float *const tile = (float *)__cvta_shared_to_generic(place.at(0, 0));
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i)
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      *(float2 *)(tile + acc.row(i) * N + acc.col(n)) = {acc.v[i / 2][n][i % 2 * 2], acc.v[i / 2][n][i % 2 * 2 + 1]};
  __syncthreads();
  for (int t = threadIdx.x; t < 2 * N; t += W * 32) {
    const int diagonal = t - N;
    float sum = 0;
    for (int r = max(0, -diagonal); r < N - max(0, diagonal); ++r)
      sum += tile[r * N + r + diagonal];
    (diagonal < 0 ? to : to + pitch)[t] = sum;
  }
  __syncthreads();
}

ATTN_INLINE void clear_entry(float *to) {
  if (lane_index() == 0)
    *to = 0;
}
ATTN_INLINE void copy_number(float *to, const float *from) {
  if (lane_index() == 0)
    *to = *from;
}
ATTN_INLINE void add_total(float *to, const float *from, int count) {
  float sum = 0;
  for (int i = lane_index(); i < count; i += 32)
    sum += from[i];
  sum = warp_sum(sum);
  if (lane_index() == 0 && count > 0)
    *to += sum;
}
// Subtracts the sum over rows of exp(sink - LSE) * delta. A row that sees no key has an LSE of +inf and contributes
// nothing.
ATTN_INLINE void add_sink_grad(float *to, const float *statistics, long long pitch, int count, float sink) {
  float sum = 0;
  for (int i = lane_index(); i < count; i += 32)
    sum = fmaf(exp2(fmaf(sink, 1.442695041f, -statistics[i])), statistics[i + pitch], sum);
  sum = warp_sum(sum);
  if (lane_index() == 0 && count > 0)
    *to -= sum;
}

} // namespace attn
