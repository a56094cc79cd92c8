// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of short rows, as on GPUs: a block has all rows and keys of a
// sequence for a head, and nothing is added up across blocks.
#pragma once

#include "attn/backward.h"
#include "attn/strips.h"

namespace attn {

// lse in base 2 as the maximum, +Inf for rows that see nothing or are none;
// what is known of delta as the sum.
template <int R, int L>
ATTN_VERB void load_statistics(StripRows<R, L> &row, const float *lse, long long stride, const float *known,
                               long long knownStride, float sign, int rows) {
  for (int r = 0; r < R; ++r) {
    const bool live = r < rows;
    row.maximum[r] = lseInBase2(live ? lse[r * stride] : -infinity);
    row.sum[r] = live && known ? sign * known[r * knownStride] : 0.f;
  }
}

template <bool Turned, int R, int N, int L>
ATTN_VERB void probabilities(Scores<R, N, L> &s, const StripRows<R, L> &row, float scale) {
  static_assert(!Turned, "rows of a strip are queries");
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      s.v[r][n] = exp2(atMostZero(s.v[r][n] * scale - row.maximum[r]));
}

// The same of modified scores; `weighted` gets probability times derivative.
template <bool Turned, int R, int N, int L, class First, class F>
ATTN_VERB void probabilities(Scores<R, N, L> &s, Scores<R, N, L> &weighted, const StripRows<R, L> &row, float scale,
                             First q0, int k0, F f) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      const float score = s.v[r][n];
      const Changed changed = apply(f, score, q0, r, k0 + n);
      s.v[r][n] = score == -infinity ? score : changed.score;
      weighted.v[r][n] = score == -infinity ? 0.f : changed.slope;
    }
  probabilities<Turned>(s, row, scale);
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      weighted.v[r][n] *= s.v[r][n];
}
template <bool Turned, int R, int N, int L, class First, class F>
ATTN_VERB void probabilities(Scores<R, N, L> &s, const StripRows<R, L> &row, float scale, First q0, int k0, F f) {
  Scores<R, N, L> unused;
  probabilities<Turned>(s, unused, row, scale, q0, k0, f);
}

template <int R, int N, int L>
ATTN_VERB void sum_grads(Scores<R, N, L> &dp, const Scores<R, N, L> &p, StripRows<R, L> &row,
                         const Scores<R, N, L> &weighted) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      row.sum[r] += p.v[r][n] * dp.v[r][n];
      dp.v[r][n] *= weighted.v[r][n];
    }
}
template <int R, int N, int L>
ATTN_VERB void sum_grads(Scores<R, N, L> &dp, const Scores<R, N, L> &p, StripRows<R, L> &row) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      row.sum[r] += dp.v[r][n] *= p.v[r][n];
}

template <bool Turned, int R, int N, int L>
ATTN_VERB void grad_scores(Scores<R, N, L> &dp, const Scores<R, N, L> &p, const StripRows<R, L> &row) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      dp.v[r][n] = p.v[r][n] * (dp.v[r][n] - row.sum[r]);
}

template <int R, int N, int C, int L>
ATTN_VERB void mma_turned(Strip<float, N, C, L> &acc, const Scores<R, N, L> &p, const Strip<float, R, C, L> &v) {
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < acc.Cols; c += lanes)
        at(acc.rows + n * acc.Cols + c) += p.v[r][n] * at(v.rows + r * v.Cols + c);
}

template <int R, int C, int L>
ATTN_VERB void take_delta(Strip<float, R, C, L> &x, const Strip<float, R, C, L> &y, const StripRows<R, L> &row,
                          float factor) {
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < x.Cols; c += lanes) {
      Lanes &to = at(x.rows + r * x.Cols + c);
      to = (to - row.sum[r] * at(y.rows + r * y.Cols + c)) * factor;
    }
}

template <int R, int L> ATTN_VERB void store_delta(float *to, const StripRows<R, L> &row, int rows) {
  for (int r = 0; r < min(rows, R); ++r)
    to[r] = row.sum[r];
}
ATTN_HELPER void sync_warp() {}

template <int RowCount, int KeyCount, int Lanes_> struct Weights {
  static constexpr int Keys = KeyCount;
  float p[RowCount][KeyCount], w[RowCount][KeyCount];
};
template <int R, int K, int N, int L>
ATTN_VERB void hold_weights(Weights<R, K, L> &held, const Scores<R, N, L> &p, const Scores<R, N, L> &w, int k0) {
  for (int n = 0; n < min(N, K - k0); ++n)
    for (int r = 0; r < R; ++r)
      held.p[r][k0 + n] = p.v[r][n], held.w[r][k0 + n] = w.v[r][n];
}
template <int R, int K, int N, int L>
ATTN_VERB void held_grads(Scores<R, N, L> &ds, const Weights<R, K, L> &held, const StripRows<R, L> &row, int k0) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      ds.v[r][n] = k0 + n < K ? held.w[r][k0 + n] - row.sum[r] * held.p[r][k0 + n] : 0.f;
}

} // namespace attn
