// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two matrix products, as register tiles of accumulators in a plain loop: each step loads a few vectors of one
// operand, broadcasts a few elements of the other, and does one FMA for each pair. 8 to 16 accumulators hide the FMA
// latency and need one load for two FMAs.
#pragma once

#include "attn/fragment.h"

namespace attn {

// Scores of `Keys` keys and `Vecs` vectors of query rows; both operands advance by one head-dim element per step.
template <int Keys, int Vecs>
ATTN_HELPER void score_tile(float *scores, int score_pitch, const float *transposed_q, const float *k, int pitch_k,
                            int dim) {
  Lanes sum[Keys][Vecs];
  ATTN_UNROLL for (int i = 0; i < Keys; ++i) ATTN_UNROLL for (int j = 0; j < Vecs; ++j) sum[i][j] = Lanes{};
  for (int d = 0; d < dim; ++d) {
    Lanes q[Vecs];
    ATTN_UNROLL for (int j = 0; j < Vecs; ++j) keep_in_register(q[j] = at(transposed_q + d * score_pitch + j * lanes));
    ATTN_UNROLL for (int i = 0; i < Keys; ++i) {
      const Lanes key = splat(k[i * pitch_k + d]);
      ATTN_UNROLL for (int j = 0; j < Vecs; ++j) sum[i][j] += key * q[j];
    }
  }
  ATTN_UNROLL for (int i = 0; i < Keys; ++i) ATTN_UNROLL for (int j = 0; j < Vecs; ++j)
      at(scores + i * score_pitch + j * lanes) = sum[i][j];
}

// Scores = Q K^T. Scores have whole vectors of rows; Q has the rows that exist.
template <int M, int N, int ValidRows, int D, int W, class T, int PQ, int PK>
ATTN_TILE_OP void mma_abt(Frag<M, N, W> &scores, const Smem<T, ValidRows, D, PQ> &Q, const Smem<T, N, D, PK> &K) {
  static_assert(M == Smem<T, ValidRows, D, PQ>::Lanes);
  scores.live = Q.live;
  // With few rows most lanes would be idle: the head dim then goes into the lanes, and the horizontal sum costs less
  // than idle lanes.
  if (Q.live <= lanes / 4) {
    for (int r = 0; r < Q.live; ++r)
      for (int n = 0; n < N; ++n) {
        const float *__restrict q = Q.rows + r * D;
        const float *__restrict k = K.rows + n * D;
        float sum = 0.f;
#pragma omp simd reduction(+ : sum)
        for (int d = 0; d < D; ++d)
          sum += q[d] * k[d];
        scores.data[n * M + r] = sum;
      }
    return;
  }
  if (!Q.is_transposed) {
    for (int d = 0; d < Q.dim; ++d)
      for (int r = 0; r < M; ++r)
        Q.transposed[d * M + r] = r < ValidRows ? Q.rows[r * D + d] : 0.f;
    Q.is_transposed = true;
  }
  constexpr int wide = 2, keys = accumulators / wide;
  int r = 0;
  for (; r + lanes < Q.live && r + wide * lanes <= M; r += wide * lanes)
    for (int n = 0; n < N; n += keys)
      score_tile<keys, wide>(scores.data + n * M + r, M, Q.transposed + r, K.rows + n * D, D, Q.dim);
  for (; r < Q.live; r += lanes)
    for (int n = 0; n < N; n += keys)
      score_tile<keys, 1>(scores.data + n * M + r, M, Q.transposed + r, K.rows + n * D, D, Q.dim);
}

// `Count` rows by `Vecs` vectors of the output. A row's probabilities for one key are neighbours in the scores, so the
// broadcasts of a step come from one cache line.
template <int Count, int Vecs>
ATTN_HELPER void output_tile(float *out, int pitch, const float *p, int pitch_p, const float *v, int keys) {
  Lanes sum[Count][Vecs];
  ATTN_UNROLL for (int i = 0; i < Count; ++i) ATTN_UNROLL for (int j = 0; j < Vecs; ++j) sum[i][j] =
      at(out + i * pitch + j * lanes);
  for (int n = 0; n < keys; ++n) {
    Lanes value[Vecs];
    ATTN_UNROLL for (int j = 0; j < Vecs; ++j) keep_in_register(value[j] = at(v + n * pitch + j * lanes));
    ATTN_UNROLL for (int i = 0; i < Count; ++i) {
      const Lanes weight = splat(p[n * pitch_p + i]);
      ATTN_UNROLL for (int j = 0; j < Vecs; ++j) sum[i][j] += weight * value[j];
    }
  }
  ATTN_UNROLL for (int i = 0; i < Count; ++i) ATTN_UNROLL for (int j = 0; j < Vecs; ++j)
      at(out + i * pitch + j * lanes) = sum[i][j];
}

// A panel of columns for all live rows: the panel of V stays in the L1 cache. Rows past the last live one may be
// computed to fill a tile; their results are not used.
template <int Vecs, int M, int N, int D, int W, class T, int P>
ATTN_HELPER void output_panel(Frag<M, D, W> &out, const Frag<M, N, W> &p, const Smem<T, N, D, P> &V, int column) {
  constexpr int count = 4;
  if (p.live == 1)
    return output_tile<1, Vecs>(out.data + column, D, p.data, M, V.rows + column, N);
  for (int r = 0; r < p.live; r += count)
    output_tile<count, Vecs>(out.data + r * D + column, D, p.data + r, M, V.rows + column, N);
}

// Output += P V.
template <int M, int N, int D, int W, class T, int P>
ATTN_TILE_OP void mma_ab(Frag<M, D, W> &out, const Frag<M, N, W> &p, const Smem<T, N, D, P> &V) {
  constexpr int wide = accumulators / 4, rest = D / lanes % wide;
  int column = 0;
  for (; column + wide * lanes <= D; column += wide * lanes)
    output_panel<wide>(out, p, V, column);
  if constexpr (rest != 0)
    output_panel<rest>(out, p, V, column);
}

// The same where the mask hides keys of the tile. A NaN or Inf in V affects only rows that see it, but 0 * NaN is NaN
// for all rows. Such tiles are rare and found by a scan (x * 0 is 0 unless x is not finite), so the exact path that
// skips zero weights need not be fast.
template <int M, int N, int D, int W, class T, int P>
ATTN_TILE_OP void mma_ab_guarded(Frag<M, D, W> &out, const Frag<M, N, W> &p, const Smem<T, N, D, P> &V,
                                 bool when = true) {
  if (!when)
    return mma_ab(out, p, V);
  Lanes zero = Lanes{};
  for (int i = 0; i < N * D; i += lanes)
    zero += at(V.rows + i) * 0.f;
  bool finite = true;
  for (int i = 0; i < lanes; ++i)
    finite &= zero[i] == 0.f;
  if (finite)
    return mma_ab(out, p, V);
  for (int r = 0; r < p.live; ++r)
    for (int n = 0; n < N; ++n)
      if (const float weight = p.data[n * M + r]; weight != 0.f)
        for (int c = 0; c < D; c += lanes)
          at(out.data + r * D + c) += weight * at(V.rows + n * D + c);
}

} // namespace attn
