// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of short sequences on SIMT tiles. A warp has all rows and keys of a sequence for its heads, so nothing is
// reduced across warps: dQ is accumulated over keys with stationary rows, dK and dV over rows with stationary keys. The
// second read of an operand hits the cache.
#pragma once
#include "attn/backward/row_statistics.cuh"
#include "attn/simt/softmax.cuh"

namespace attn {

// Loads row statistics: the LSE in base 2 as the maximum, +inf for a row that sees no key or one past the end, so that
// its probabilities are 0; the known part of delta, if any, as the sum: -dLSE, or the delta that this warp may have
// stored itself, so the load bypasses the read-only cache.
template <int R, int L>
ATTN_INLINE void load_row_statistics(SimtSoftmaxState<R, L> &row, const float *lse, long long stride,
                                     const float *known, long long known_stride, float sign, int rows) {
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

// The forward pass may have accumulated the products in another order, so the exponential may exceed 1 at a large LSE.
ATTN_INLINE float at_most_one(float p) {
  asm("min.NaN.f32 %0, %0, 0f3F800000;" : "+f"(p));
  return p;
}

// exp(scale * s - lse); 0 where s is -inf.
template <bool Transposed, int R, int N, int L>
ATTN_INLINE void probabilities(SimtScores<R, N, L> &s, const SimtSoftmaxState<R, L> &row, float scale) {
  static_assert(!Transposed);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = at_most_one(exp2(fmaf(s.v[r][n], scale, -row.max[r])));
}
// Probabilities of modified scores; `weighted` gets probability times derivative.
template <bool Transposed, int R, int N, int L, class First, class F>
ATTN_INLINE void probabilities(SimtScores<R, N, L> &s, SimtScores<R, N, L> &weighted, const SimtSoftmaxState<R, L> &row,
                               float scale, First q0, int k0, F f) {
  static_assert(!Transposed);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float score = s.v[r][n];
      const ModifiedScore modified = apply(f, score, q0, r, k0 + n, k0, float(n));
      s.v[r][n] = score == -infinity() ? 0 : at_most_one(exp2(fmaf(modified.score, scale, -row.max[r])));
      weighted.v[r][n] = score == -infinity() ? 0 : s.v[r][n] * modified.slope;
    }
}
template <bool Transposed, int R, int N, int L, class First, class F>
ATTN_INLINE void probabilities(SimtScores<R, N, L> &s, const SimtSoftmaxState<R, L> &row, float scale, First q0, int k0,
                               F f) {
  SimtScores<R, N, L> unused;
  probabilities<Transposed>(s, unused, row, scale, q0, k0, f);
}

// Adds p * dp to the row sums, which are delta after all keys; dp becomes weighted * dp.
template <int R, int N, int L>
ATTN_INLINE void accumulate_delta(SimtScores<R, N, L> &dp, const SimtScores<R, N, L> &p, SimtSoftmaxState<R, L> &row,
                                  const SimtScores<R, N, L> &weighted) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      row.sum[r] = fmaf(p.v[r][n], dp.v[r][n], row.sum[r]), dp.v[r][n] *= weighted.v[r][n];
}
template <int R, int N, int L>
ATTN_INLINE void accumulate_delta(SimtScores<R, N, L> &dp, const SimtScores<R, N, L> &p, SimtSoftmaxState<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      row.sum[r] += dp.v[r][n] *= p.v[r][n];
}

// dp becomes p * (dp - delta).
template <bool Transposed, int R, int N, int L>
ATTN_INLINE void grad_scores(SimtScores<R, N, L> &dp, const SimtScores<R, N, L> &p, const SimtSoftmaxState<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      dp.v[r][n] = p.v[r][n] * (dp.v[r][n] - row.sum[r]);
}

// acc += P^T V, summed over rows.
template <int R, int N, int C, int L>
ATTN_INLINE void mma_atb_simt(SimtTile<float, N, C, L> &acc, const SimtScores<R, N, L> &p,
                              const SimtTile<float, R, C, L> &v) {
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
ATTN_INLINE void subtract_delta(SimtTile<float, R, C, L> &x, const SimtTile<float, R, C, L> &y,
                                const SimtSoftmaxState<R, L> &row, float scale) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < x.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        x.v[r][i][c] = fmaf(-row.sum[r], y.v[r][i][c], x.v[r][i][c]) * scale;
}

template <int R, int L> ATTN_INLINE void store_delta(float *to, const SimtSoftmaxState<R, L> &row, int rows) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < rows && lane_index() % L == r % L)
      to[r] = row.sum[r];
}

// Cached probabilities p and weighted gradients w = p * dp of a row, one key a lane, so that keys are not read again.
template <int RowCount, int KeyCount, int LaneCount> struct SimtProbabilities {
  static constexpr int Own = (KeyCount + LaneCount - 1) / LaneCount, Keys = Own * LaneCount;
  float p[RowCount][Own], w[RowCount][Own];
};
template <int R, int K, int N, int L>
ATTN_INLINE void cache_probabilities(SimtProbabilities<R, K, L> &operand, const SimtScores<R, N, L> &p,
                                     const SimtScores<R, N, L> &w, int k0) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < operand.Own; ++i)
      if (k0 + n == i * L + lane_index() % L)
#pragma unroll
        for (int r = 0; r < R; ++r)
          operand.p[r][i] = p.v[r][n], operand.w[r][i] = w.v[r][n];
}
// Gradients of scores for keys from k0 on: w - delta * p. All lanes of the warp take part.
template <int R, int K, int N, int L>
ATTN_INLINE void cached_grad_scores(SimtScores<R, N, L> &ds, const SimtProbabilities<R, K, L> &operand,
                                    const SimtSoftmaxState<R, L> &row, int k0) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float own = 0;
#pragma unroll
      for (int i = 0; i < operand.Own; ++i)
        if (operand.Own == 1 || (k0 + n) / L == i)
          own = fmaf(-row.sum[r], operand.p[r][i], operand.w[r][i]);
      ds.v[r][n] = __shfl_sync(~0u, own, lane_index() / L * L + (k0 + n) % L);
    }
}

} // namespace attn
