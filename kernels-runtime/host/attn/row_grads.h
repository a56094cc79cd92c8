// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of a sequence that is one tile, as on GPUs: all keys of a row are
// there, so delta is a sum over them. Scores have their rows in the lanes.
#pragma once

#include "attn/backward.h"
#include "attn/product.h"
#include "attn/strip_grad.h"

namespace attn {

template <int N, class Stride, class GradStride>
ATTN_VERB void load_statistics(Statistics<N> &stats, const float *lse, Stride stride, const float *known,
                               GradStride knownStride, float sign, int rows) {
  for (int r = 0; r < N; ++r) {
    const float x = r < rows ? lse[offset_of(stride, r)] : -infinity;
    stats.lse[r] = lseInBase2(x);
    stats.delta[r] = known && r < rows ? sign * known[offset_of(knownStride, r)] : 0.f;
  }
}

// Of the rows that are there, in whole vectors.
template <int M, int N, int W> ATTN_VERB bool is_finite(const Frag<M, N, W> &x) {
  float zero = 0.f;
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < x.live; ++r)
      zero += x.data[n * M + r] * 0.f;
  return zero == 0.f;
}
ATTN_HELPER bool barrier_all(bool own) { return own; }

template <int M, int N, int W>
ATTN_VERB void row_grads(Frag<M, N, W> &grad, const Frag<M, N, W> &p, const Statistics<M> &stats,
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
ATTN_VERB void row_grads(Frag<M, N, W> &grad, const Frag<M, N, W> &p, const Statistics<M> &stats) {
  row_grads(grad, p, stats, p);
}

// Row by row, for whoever reads it transposed.
template <class T, int There, int Cols, int P, int M, int N, int W>
ATTN_VERB void round(Smem<T, There, Cols, P> &to, const Frag<M, N, W> &x) {
  to.live = x.live;
  for (int r = 0; r < There; ++r)
    for (int n = 0; n < Cols; ++n)
      to.rows[r * Cols + n] = n < N && r < x.live ? x.data[n * M + r] : 0.f;
}

// acc = A^T B
template <class T, int K, int M, int D, int PA, int PB, int W>
ATTN_VERB void mma_tn(Frag<M, D, W> &acc, const Smem<T, K, M, PA> &A, const Smem<T, K, D, PB> &B) {
  fill(acc.data, M * D, 0.f);
  for (int k = 0; k < A.live; ++k)
    for (int m = 0; m < M; ++m)
      if (const float a = A.rows[k * M + m]; a != 0.f)
        for (int c = 0; c < D; c += lanes)
          at(acc.data + m * D + c) += a * at(B.rows + k * D + c);
}

} // namespace attn
