// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of score-modifier arrays: tiles of dS are accumulated and reduced per array entry, then the partial results
// are summed.
#pragma once
#include "attn/backward.cuh"
#include "attn/fragment.cuh"

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

// The tile passes through shared memory; each thread sums one diagonal.
template <int N, int W, class T, int R, int C, int P>
ATTN_INLINE void store_diagonal_sums(float *to, long long pitch, const Frag<N, N, W> &acc,
                                     const Smem<T, R, C, P> &place) {
  static_assert(R * P * 2 >= N * N * 4);
  float *const all = (float *)__cvta_shared_to_generic(place.at(0, 0));
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i)
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      *(float2 *)(all + acc.row(i) * N + acc.col(n)) = {acc.v[i / 2][n][i % 2 * 2], acc.v[i / 2][n][i % 2 * 2 + 1]};
  __syncthreads();
  for (int t = threadIdx.x; t < 2 * N; t += W * 32) {
    const int away = t - N;
    float sum = 0;
    for (int r = max(0, -away); r < N - max(0, away); ++r)
      sum += all[r * N + r + away];
    (away < 0 ? to : to + pitch)[t] = sum;
  }
  __syncthreads();
}

ATTN_INLINE void clear_entry(float *to) {
  if (lane_index() == 0)
    *to = 0;
}
ATTN_INLINE void add_total(float *to, const float *from, int count) {
  float sum = 0;
  for (int i = lane_index(); i < count; i += 32)
    sum += from[i];
  sum = warp_sum(sum);
  if (lane_index() == 0 && count > 0)
    *to += sum;
}
// A fully masked row has an lse of +inf here and contributes nothing.
ATTN_INLINE void add_sink_grad(float *to, const float *statistics, long long pitch, int count, float sink) {
  float sum = 0;
  for (int i = lane_index(); i < count; i += 32)
    sum = fmaf(exp2(fmaf(sink, 1.442695041f, -statistics[i])), statistics[i + pitch], sum);
  sum = warp_sum(sum);
  if (lane_index() == 0 && count > 0)
    *to -= sum;
}

} // namespace attn
