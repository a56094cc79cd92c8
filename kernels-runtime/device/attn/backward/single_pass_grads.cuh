// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of a sequence that is one tile, by one CTA: all keys of a row are in its fragment, so delta is a row sum,
// and dK and dV are products with the transposes of dS and P.
#pragma once
#include "attn/backward/row_statistics.cuh"
#include "attn/mma/mma.cuh"
#include "attn/softmax/softmax.cuh"

namespace attn {

// Loads row statistics into shared memory: the LSE in base 2, and the known part of delta. Ends with a barrier.
template <int N, class Stride, class GradStride>
ATTN_INLINE void load_row_statistics(const RowStatistics<N> &stats, const float *lse, Stride stride, const float *known,
                                     GradStride known_stride, float sign, int rows) {
  for (int r = threadIdx.x; r < N; r += Cta<N * 0>::threads) {
    word_at(stats.lse(r)) = __float_as_uint(lse_in_base_2(r < rows ? lse[offset_of(stride, r)] : -infinity()));
    word_at(stats.delta(r)) = __float_as_uint(known && r < rows ? sign * known[offset_of(known_stride, r)] : 0);
  }
  __syncthreads();
}

// Are the thread's elements finite? 0 times a NaN or Inf is not 0.
template <int R, int N, int W> ATTN_INLINE bool is_finite(const Frag<R, N, W> &x) {
  float test = 0;
#pragma unroll
  for (int m = 0; m < x.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < x.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        test = fmaf(x.v[m][n][i], 0.f, test);
  return test == 0;
}
ATTN_INLINE bool barrier_and(bool own) { return __syncthreads_and(own); }

// x becomes weighted * (x - delta), where delta is the known part plus the row's sum of p * x.
template <int R, int N, int W>
ATTN_INLINE void single_pass_grads(Frag<R, N, W> &x, const Frag<R, N, W> &p, const RowStatistics<R> &stats,
                                   const Frag<R, N, W> &weighted) {
#pragma unroll
  for (int i = 0; i < 2 * x.Blocks; ++i) {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < x.Pieces; ++n)
#pragma unroll
      for (int c = i % 2 * 2; c < i % 2 * 2 + 2; ++c)
        sum = fmaf(p.v[i / 2][n][c], x.v[i / 2][n][c], sum);
    const float delta = quad_sum(sum) + shared_float(stats.delta(x.row(i)));
#pragma unroll
    for (int n = 0; n < x.Pieces; ++n)
#pragma unroll
      for (int c = i % 2 * 2; c < i % 2 * 2 + 2; ++c)
        x.v[i / 2][n][c] = weighted.v[i / 2][n][c] * (x.v[i / 2][n][c] - delta);
  }
}
template <int R, int N, int W>
ATTN_INLINE void single_pass_grads(Frag<R, N, W> &x, const Frag<R, N, W> &p, const RowStatistics<R> &stats) {
  single_pass_grads(x, p, stats, p);
}

// Converts the rows that exist and stores them to shared memory, to be read transposed. Ends with a barrier.
template <class T, int RT, int NT, int P, int R, int N, int W>
ATTN_INLINE void convert(const Smem<T, RT, NT, P> &to, const Frag<R, N, W> &x) {
#pragma unroll
  for (int i = 0; i < 2 * x.Blocks; ++i)
#pragma unroll
    for (int n = 0; n < x.Pieces; ++n)
      if (RT == R || x.row(i) < RT)
        word_at(to.at(x.row(i), x.col(n))) = pack<T>(x.v[i / 2][n][i % 2 * 2], x.v[i / 2][n][i % 2 * 2 + 1]);
  __syncthreads();
}

// acc = A^T B: the depth is their rows, and each warp computes the result for some of A's columns.
template <class T, int K, int R, int C, int PA, int PB, int W>
ATTN_INLINE void mma_atb(Frag<R, C, W> &acc, const Smem<T, K, R, PA> &A, const Smem<T, K, C, PB> &B) {
  const int lane = lane_index();
  const unsigned from = A.at(lane % 8 + lane / 16 * 8, warp_index() * acc.Blocks * 16 + lane / 8 % 2 * 8);
  clear(acc);
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    unsigned a[R / W / 16][4] = {};
#pragma unroll
    for (int m = 0; m < acc.Blocks; ++m) {
      const unsigned at = from + (k * PA + m * 16) * 2;
      if (k + 16 <= K)
        load_matrices_transposed(a[m], at);
      else
        load_matrices_transposed((unsigned (&)[2])a[m], at);
    }
    mma_depth(acc, a, B, k);
  }
}

} // namespace attn
