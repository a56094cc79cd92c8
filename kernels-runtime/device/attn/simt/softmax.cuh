// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The softmax on SIMT tiles: mask, score modifiers, dropout and sinks.
#pragma once
#include "attn/metadata/block_map.cuh"
#include "attn/simt/tile.cuh"
#include "attn/softmax/dropout_state.cuh"
#include "attn/softmax/modify.cuh"

namespace attn {

// As for fragments (softmax/mask.cuh, softmax/modify.cuh), with the loop over rows outside.
template <int R, int N, int L, class First, class F>
ATTN_INLINE void apply_mask(SimtScores<R, N, L> &s, First q0, int k0, F f) {
  const float hidden = -infinity();
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = f(query_of(q0, r), k0 + n) ? s.v[r][n] : hidden;
}
template <int R, int N, int L, class First, class F>
ATTN_INLINE void modify(SimtScores<R, N, L> &s, First q0, int k0, F f) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = apply(f, s.v[r][n], q0, r, k0 + n, k0, float(n));
}
template <int R, int N, int L> ATTN_INLINE float largest_of(const SimtScores<R, N, L> &s) {
  float largest = 0;
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      largest = max(largest, abs(s.v[r][n]));
  return largest;
}

// Needs a positive scale. A NaN never becomes a maximum; its own probability is NaN.
template <int R, int N, int C, int L>
ATTN_INLINE void online_softmax(SimtScores<R, N, L> &s, SimtSoftmaxState<R, L> &row, SimtTile<float, R, C, L> &acc,
                                float scale) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float top = s.v[r][0];
#pragma unroll
    for (int n = 1; n < N; ++n)
      top = max(top, s.v[r][n]);
    const Reference before = row.reference(r), to = raised(before, top, scale);
    const float rescale_factor = exp2(conversion_exponent(before, to, scale)), at = to.unscaled ? 0 : to.max;
    row.set_reference(r, to), row.sum[r] *= rescale_factor;
    if (to.unscaled & to.max != -infinity())
#pragma unroll
      for (int n = 0; n < N; ++n)
        s.v[r][n] -= to.max;
#pragma unroll
    for (int n = 0; n < N; ++n)
      row.sum[r] += s.v[r][n] = exp2(fmaf(s.v[r][n], scale, -at));
    scale_row(acc, r, rescale_factor);
  }
}

// All lanes of a group hold all scores: each computes the random numbers of some, and a ballot distributes the results.
template <int R, int N, int L, class First, class D>
ATTN_INLINE void dropout(SimtScores<R, N, L> &s, First q0, int k0, D state, int threshold, float factor = 1) {
#pragma unroll
  for (int from = 0; from < R * N; from += L) {
    const int own = from + lane_index() % L, r = own / N;
    const unsigned keep =
        __ballot_sync(~0u, !state_of_row(state, q0, r).is_dropped(query_of(q0, r), k0 + own % N, threshold)) >>
        lane_index() / L * L;
#pragma unroll
    for (int i = 0; i < L && from + i < R * N; ++i) {
      float &x = s.v[(from + i) / N][(from + i) % N];
      x = keep >> i & 1 ? x * factor : 0;
    }
  }
}

// As for fragments; here all lanes of a group have the row's sum.
template <int R, int C, int L, class First, class F>
ATTN_INLINE void add_sink(SimtTile<float, R, C, L> &acc, SimtSoftmaxState<R, L> &row, float scale, First first, F f) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float own;
    Reference of = row.reference(r);
    const float rescale_factor = join_sink(of, own, sink_of(f, first, r), scale, 0);
    row.set_reference(r, of);
    row.sum[r] = fmaf(row.sum[r], rescale_factor, own);
    scale_row(acc, r, rescale_factor);
  }
}

template <int R, int C, int L> ATTN_INLINE void normalize(SimtTile<float, R, C, L> &acc, SimtSoftmaxState<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const float factor = row.sum[r] == 0 ? 0 : reciprocal(row.sum[r]);
    scale_row(acc, r, factor);
  }
}

} // namespace attn
