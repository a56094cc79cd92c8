// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of short sequences, as on GPUs: a CTA has all rows and keys of a sequence for a head, and nothing is
// reduced across CTAs.
#pragma once

#include "attn/backward.h"
#include "attn/simt_tile.h"

namespace attn {

// Loads row statistics: the LSE in base 2 as the maximum, +Inf for a fully masked row or one past the end; the known
// part of delta as the sum.
template <int R, int L>
ATTN_TILE_OP void load_row_statistics(SimtSoftmaxState<R, L> &row, const float *lse, long long stride,
                                      const float *known, long long known_stride, float sign, int rows) {
  for (int r = 0; r < R; ++r) {
    const bool live = r < rows;
    row.maximum[r] = lse_in_base_2(live ? lse[r * stride] : -infinity);
    row.sum[r] = live && known ? sign * known[r * known_stride] : 0.f;
  }
}

template <bool Transposed, int R, int N, int L>
ATTN_TILE_OP void probabilities(SimtScores<R, N, L> &s, const SimtSoftmaxState<R, L> &row, float scale) {
  static_assert(!Transposed, "rows of SIMT scores are queries");
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      s.v[r][n] = exp2(at_most_zero(s.v[r][n] * scale - row.maximum[r]));
}

// Probabilities of modified scores; `weighted` gets probability times derivative.
template <bool Transposed, int R, int N, int L, class First, class F>
ATTN_TILE_OP void probabilities(SimtScores<R, N, L> &s, SimtScores<R, N, L> &weighted,
                                const SimtSoftmaxState<R, L> &row, float scale, First q0, int k0, F f) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      const float score = s.v[r][n];
      const ModifiedScore modified = apply(f, score, q0, r, k0 + n);
      s.v[r][n] = score == -infinity ? score : modified.score;
      weighted.v[r][n] = score == -infinity ? 0.f : modified.slope;
    }
  probabilities<Transposed>(s, row, scale);
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      weighted.v[r][n] *= s.v[r][n];
}
template <bool Transposed, int R, int N, int L, class First, class F>
ATTN_TILE_OP void probabilities(SimtScores<R, N, L> &s, const SimtSoftmaxState<R, L> &row, float scale, First q0,
                                int k0, F f) {
  SimtScores<R, N, L> unused;
  probabilities<Transposed>(s, unused, row, scale, q0, k0, f);
}

template <int R, int N, int L>
ATTN_TILE_OP void accumulate_delta(SimtScores<R, N, L> &dp, const SimtScores<R, N, L> &p, SimtSoftmaxState<R, L> &row,
                                   const SimtScores<R, N, L> &weighted) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      row.sum[r] += p.v[r][n] * dp.v[r][n];
      dp.v[r][n] *= weighted.v[r][n];
    }
}
template <int R, int N, int L>
ATTN_TILE_OP void accumulate_delta(SimtScores<R, N, L> &dp, const SimtScores<R, N, L> &p, SimtSoftmaxState<R, L> &row) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      row.sum[r] += dp.v[r][n] *= p.v[r][n];
}

template <bool Transposed, int R, int N, int L>
ATTN_TILE_OP void grad_scores(SimtScores<R, N, L> &dp, const SimtScores<R, N, L> &p,
                              const SimtSoftmaxState<R, L> &row) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      dp.v[r][n] = p.v[r][n] * (dp.v[r][n] - row.sum[r]);
}

template <int R, int N, int C, int L>
ATTN_TILE_OP void mma_atb_simt(SimtTile<float, N, C, L> &acc, const SimtScores<R, N, L> &p,
                               const SimtTile<float, R, C, L> &v) {
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < acc.Cols; c += lanes)
        at(acc.rows + n * acc.Cols + c) += p.v[r][n] * at(v.rows + r * v.Cols + c);
}

template <int R, int C, int L>
ATTN_TILE_OP void subtract_delta(SimtTile<float, R, C, L> &x, const SimtTile<float, R, C, L> &y,
                                 const SimtSoftmaxState<R, L> &row, float factor) {
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < x.Cols; c += lanes) {
      Lanes &to = at(x.rows + r * x.Cols + c);
      to = (to - row.sum[r] * at(y.rows + r * y.Cols + c)) * factor;
    }
}

template <int R, int L> ATTN_TILE_OP void store_delta(float *to, const SimtSoftmaxState<R, L> &row, int rows) {
  for (int r = 0; r < min(rows, R); ++r)
    to[r] = row.sum[r];
}
ATTN_HELPER void sync_warp() {}

template <int RowCount, int KeyCount, int LaneCount> struct SimtProbabilities {
  static constexpr int Keys = KeyCount;
  float p[RowCount][KeyCount], w[RowCount][KeyCount];
};
template <int R, int K, int N, int L>
ATTN_TILE_OP void cache_probabilities(SimtProbabilities<R, K, L> &operand, const SimtScores<R, N, L> &p,
                                      const SimtScores<R, N, L> &w, int k0) {
  for (int n = 0; n < min(N, K - k0); ++n)
    for (int r = 0; r < R; ++r)
      operand.p[r][k0 + n] = p.v[r][n], operand.w[r][k0 + n] = w.v[r][n];
}
template <int R, int K, int N, int L>
ATTN_TILE_OP void cached_grad_scores(SimtScores<R, N, L> &ds, const SimtProbabilities<R, K, L> &operand,
                                     const SimtSoftmaxState<R, L> &row, int k0) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      ds.v[r][n] = k0 + n < K ? operand.w[r][k0 + n] - row.sum[r] * operand.p[r][k0 + n] : 0.f;
}

} // namespace attn
