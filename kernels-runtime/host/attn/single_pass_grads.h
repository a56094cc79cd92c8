// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of a sequence that is one tile, as on GPUs: all keys of a row are there, so delta is a row sum. Scores have
// their rows in the vector lanes.
#pragma once

#include "attn/backward.h"
#include "attn/mma.h"
#include "attn/simt_backward.h"

namespace attn {

template <int N, class Stride, class GradStride>
ATTN_TILE_OP void load_row_statistics(RowStatistics<N> &stats, const float *lse, Stride stride, const float *known,
                                      GradStride known_stride, float sign, int rows) {
  for (int r = 0; r < N; ++r) {
    const float x = r < rows ? lse[offset_of(stride, r)] : -infinity;
    stats.lse[r] = lse_in_base_2(x);
    stats.delta[r] = known && r < rows ? sign * known[offset_of(known_stride, r)] : 0.f;
  }
}

// Tests the valid rows.
template <int M, int N, int W> ATTN_TILE_OP bool is_finite(const Frag<M, N, W> &x) {
  float zero = 0.f;
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < x.live; ++r)
      zero += x.data[n * M + r] * 0.f;
  return zero == 0.f;
}
ATTN_HELPER bool barrier_and(bool own) { return own; }

template <int M, int N, int W>
ATTN_TILE_OP void single_pass_grads(Frag<M, N, W> &grad, const Frag<M, N, W> &p, const RowStatistics<M> &stats,
                                    const Frag<M, N, W> &weighted) {
  for (int r = 0; r < grad.live; r += lanes) {
    Lanes delta = at(stats.delta + r);
    for (int n = 0; n < N; ++n)
      delta += at(p.data + n * M + r) * at(grad.data + n * M + r);
    for (int n = 0; n < N; ++n) {
      Lanes &x = at(grad.data + n * M + r);
      x = at(weighted.data + n * M + r) * (x - delta);
    }
  }
}
template <int M, int N, int W>
ATTN_TILE_OP void single_pass_grads(Frag<M, N, W> &grad, const Frag<M, N, W> &p, const RowStatistics<M> &stats) {
  single_pass_grads(grad, p, stats, p);
}

// Stores the tile row by row, to be read transposed.
template <class T, int ValidRows, int Cols, int P, int M, int N, int W>
ATTN_TILE_OP void convert(Smem<T, ValidRows, Cols, P> &to, const Frag<M, N, W> &x) {
  to.live = x.live;
  for (int r = 0; r < ValidRows; ++r)
    for (int n = 0; n < Cols; ++n)
      to.rows[r * Cols + n] = n < N && r < x.live ? x.data[n * M + r] : 0.f;
}

// acc = A^T B
template <class T, int K, int M, int D, int PA, int PB, int W>
ATTN_TILE_OP void mma_atb(Frag<M, D, W> &acc, const Smem<T, K, M, PA> &A, const Smem<T, K, D, PB> &B) {
  fill(acc.data, M * D, 0.f);
  for (int k = 0; k < A.live; ++k)
    for (int m = 0; m < M; ++m)
      if (const float a = A.rows[k * M + m]; a != 0.f)
        for (int c = 0; c < D; c += lanes)
          at(acc.data + m * D + c) += a * at(B.rows + k * D + c);
}

} // namespace attn
