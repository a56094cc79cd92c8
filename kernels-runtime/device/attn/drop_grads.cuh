// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout and gradients of scores at once, so that numbers are drawn once.
#pragma once
#include "attn/backward.cuh"
#include "attn/drop.cuh"

namespace attn {

// What p is weighted by in its gradient: itself, or what the place has.
template <int R, int N, int W> ATTN_INLINE float weight_at(const Frag<R, N, W> &p, int m, int n, int i) { return p.v[m][n][i]; }
template <class T, int R, int N, int W> ATTN_INLINE float weight_at(const Held<T, R, N, W> &p, int m, int n, int i) {
  const unsigned pair = p.v[m][n / 2][n % 2 * 2 + i / 2];
  return i % 2 ? high_half<T>(pair) : low_half<T>(pair);
}

// x becomes weight * (x * factor - delta), without the first term if the pair is dropped, and p becomes 0 there.
template <bool Turned, int R, int N, int W, class Weighted, int K>
ATTN_INLINE void drop_grads(Frag<R, N, W> &x, Frag<R, N, W> &p, const Weighted &weighted, const Statistics<K> &stats, int row0, int column0, Draws draws,
                            int below, float factor) {
  float delta[4];
  float2 ahead[2];  // of both columns of two pieces
  with_kept<Turned>(x, row0, column0, draws, below, [&](int m, int n, int c, const bool (&keeps)[4]) {
    if (Turned && c == 0) ahead[0] = shared_floats(stats.delta(x.col(n))), ahead[1] = shared_floats(stats.delta(x.col(n + 1)));
    if (!Turned && n == 0 && c == 0) delta[0] = delta[2] = shared_float(stats.delta(x.row(2 * m))), delta[1] = delta[3] = shared_float(stats.delta(x.row(2 * m + 1)));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int piece = n + i / 2, at = i % 2 * 2 + c;
      const float own = Turned ? c ? ahead[i / 2].y : ahead[i / 2].x : delta[i];
      const float weight = weight_at(weighted, m, piece, at);
      float &grad = x.v[m][piece][at];
      grad = weight * (keeps[i] ? fmaf(grad, factor, -own) : -own);
      p.v[m][piece][at] = keeps[i] ? p.v[m][piece][at] : 0;
    }
  });
}
template <bool Turned, int R, int N, int W, int K>
ATTN_INLINE void drop_grads(Frag<R, N, W> &x, Frag<R, N, W> &p, const Statistics<K> &stats, int row0, int column0, Draws draws, int below, float factor) {
  drop_grads<Turned>(x, p, p, stats, row0, column0, draws, below, factor);
}

}  // namespace attn
