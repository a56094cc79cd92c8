// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of short rows. A warp has all rows and keys of a sequence for its heads, so nothing is added up across
// warps: dQ is summed up over keys while rows stay, dK and dV over rows while keys stay. What is read twice comes from
// a cache the second time.
#pragma once
#include "attn/backward.cuh"
#include "attn/strip.cuh"

namespace attn {

// lse * log2(e) as the maximum, so that probabilities of a row without keys and of rows that are not there are 0; as
// the sum minus dlse, or what delta was found to be, if anything is known. What is loaded may have been written by this
// warp: not through the cache that may be stale.
template <int R, int L>
ATTN_INLINE void load_statistics(StripRows<R, L> &row, const float *lse, long long stride, const float *known,
                                 long long known_stride, float sign, int rows) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    row.max[r] = infinity(), row.sum[r] = 0;
    if (r < rows) {
      row.max[r] = lse_in_base_2(lse[r * stride]);
      if (known)
        row.sum[r] = sign * *(const volatile float *)(known + r * known_stride);
    }
  }
}

// The forward pass need not have added up these products in the same order, so where LSE is large exp2() may be
// above 1.
ATTN_INLINE float at_most_one(float p) {
  asm("min.NaN.f32 %0, %0, 0f3F800000;" : "+f"(p));
  return p;
}

// exp(scale * s - lse); 0 where s is -inf.
template <bool Turned, int R, int N, int L>
ATTN_INLINE void probabilities(Scores<R, N, L> &s, const StripRows<R, L> &row, float scale) {
  static_assert(!Turned);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = at_most_one(exp2(fmaf(s.v[r][n], scale, -row.max[r])));
}
// The same of modified scores; `weighted` gets probability times derivative.
template <bool Turned, int R, int N, int L, class First, class F>
ATTN_INLINE void probabilities(Scores<R, N, L> &s, Scores<R, N, L> &weighted, const StripRows<R, L> &row, float scale,
                               First q0, int k0, F f) {
  static_assert(!Turned);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float score = s.v[r][n];
      const Changed changed = apply(f, score, q0, r, k0 + n, k0, float(n));
      s.v[r][n] = score == -infinity() ? 0 : at_most_one(exp2(fmaf(changed.score, scale, -row.max[r])));
      weighted.v[r][n] = score == -infinity() ? 0 : s.v[r][n] * changed.slope;
    }
}
template <bool Turned, int R, int N, int L, class First, class F>
ATTN_INLINE void probabilities(Scores<R, N, L> &s, const StripRows<R, L> &row, float scale, First q0, int k0, F f) {
  Scores<R, N, L> unused;
  probabilities<Turned>(s, unused, row, scale, q0, k0, f);
}

// p * dp joins the sums, those of all keys are delta; dp becomes weighted * dp.
template <int R, int N, int L>
ATTN_INLINE void sum_grads(Scores<R, N, L> &dp, const Scores<R, N, L> &p, StripRows<R, L> &row,
                           const Scores<R, N, L> &weighted) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      row.sum[r] = fmaf(p.v[r][n], dp.v[r][n], row.sum[r]), dp.v[r][n] *= weighted.v[r][n];
}
template <int R, int N, int L>
ATTN_INLINE void sum_grads(Scores<R, N, L> &dp, const Scores<R, N, L> &p, StripRows<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      row.sum[r] += dp.v[r][n] *= p.v[r][n];
}

// dp becomes p * (dp - delta).
template <bool Turned, int R, int N, int L>
ATTN_INLINE void grad_scores(Scores<R, N, L> &dp, const Scores<R, N, L> &p, const StripRows<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      dp.v[r][n] = p.v[r][n] * (dp.v[r][n] - row.sum[r]);
}

// acc += P^T V: keys' sums over rows.
template <int R, int N, int C, int L>
ATTN_INLINE void mma_turned(Strip<float, N, C, L> &acc, const Scores<R, N, L> &p, const Strip<float, R, C, L> &v) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < acc.Own; ++i)
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < 8; ++c)
          acc.v[n][i][c] = fmaf(p.v[r][n], v.v[r][i][c], acc.v[n][i][c]);
}

// x = (x - delta * y) * scale
template <int R, int C, int L>
ATTN_INLINE void take_delta(Strip<float, R, C, L> &x, const Strip<float, R, C, L> &y, const StripRows<R, L> &row,
                            float scale) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < x.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        x.v[r][i][c] = fmaf(-row.sum[r], y.v[r][i][c], x.v[r][i][c]) * scale;
}

template <int R, int L> ATTN_INLINE void store_delta(float *to, const StripRows<R, L> &row, int rows) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < rows && lane_index() % L == r % L)
      to[r] = row.sum[r];
}

// What a row weighs its keys by, and that times the gradient of the weight: a key for each lane, so that keys that were
// read need not be read again.
template <int RowCount, int KeyCount, int LaneCount> struct Weights {
  static constexpr int Own = (KeyCount + LaneCount - 1) / LaneCount, Keys = Own * LaneCount;
  float p[RowCount][Own], w[RowCount][Own];
};
template <int R, int K, int N, int L>
ATTN_INLINE void hold_weights(Weights<R, K, L> &held, const Scores<R, N, L> &p, const Scores<R, N, L> &w, int k0) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < held.Own; ++i)
      if (k0 + n == i * L + lane_index() % L)
#pragma unroll
        for (int r = 0; r < R; ++r)
          held.p[r][i] = p.v[r][n], held.w[r][i] = w.v[r][n];
}
// Gradients of scores, of keys from k0 on: w - delta * p. All lanes of the warp.
template <int R, int K, int N, int L>
ATTN_INLINE void held_grads(Scores<R, N, L> &ds, const Weights<R, K, L> &held, const StripRows<R, L> &row, int k0) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float own = 0;
#pragma unroll
      for (int i = 0; i < held.Own; ++i)
        if (held.Own == 1 || (k0 + n) / L == i)
          own = fmaf(-row.sum[r], held.p[r][i], held.w[r][i]);
      ds.v[r][n] = __shfl_sync(~0u, own, lane_index() / L * L + (k0 + n) % L);
    }
}
ATTN_INLINE void sync_warp() { __syncwarp(); }

} // namespace attn
