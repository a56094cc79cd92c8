// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// acc += P V where a zero in P means "hidden". A tensor core computes 0 * NaN = NaN, so a NaN or Inf in V would reach
// rows from which its key is hidden. A finite tile, the normal case, costs one scan of V and one barrier.
#pragma once
#include "attn/copy/copy_async.cuh"
#include "attn/mma/mma.cuh"

namespace attn {

template <class T> ATTN_INLINE bool all_finite(uint4 x) {
  return is_zero(times_zero<T>(x.x, times_zero<T>(x.y, times_zero<T>(x.z, times_zero<T>(x.w, 0)))));
}
// Does row k of V have a NaN or Inf? The result is uniform in the warp.
template <class T, int N, int C, int P> ATTN_INLINE bool row_is_nonfinite(const Smem<T, N, C, P> &V, int k) {
  unsigned test = 0;
#pragma unroll
  for (int c = lane_index() * 2; c < C; c += 64)
    test = times_zero<T>(word_at(V.at(k, c)), test);
  return __any_sync(~0u, !is_zero(test));
}

// Adds p * v for each non-finite row of V to the rows of acc with p > 0, and clears these rows of V. One key at a time
// keeps the code small. The column of P for key k comes from a product with the k-th unit vector, since registers
// cannot be indexed at run time.
template <class T, int R, int N, int C, int P, int W>
ATTN_INLINE void add_nonfinite_rows(Frag<R, C, W> &acc, const unsigned (&p)[(N + 15) / 16][R / W / 16][4],
                                    const Smem<T, N, C, P> &V) {
#pragma unroll 1
  for (int k = 0; k < N; ++k) {
    if (!row_is_nonfinite(V, k))
      continue;
    float x[R / W / 16][4] = {};
#pragma unroll
    for (int d = 0; d < N; d += 16) {
      const int at = k - d - lane_index() % 4 * 2;
      const unsigned low = pack<T>(1, 0), one = at == 0 || at == 8 ? low : at == 1 || at == 9 ? low << 16 : 0;
#pragma unroll
      for (int m = 0; m < acc.Blocks; ++m)
        mma<T>(x[m], p[d / 16][m], at < 8 ? one : 0, at < 8 ? 0 : one);
    }
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n) {
      const unsigned v = word_at(V.at(k, acc.col(n)));
#pragma unroll
      for (int i = 0; i < 2 * acc.Blocks; ++i)
        if (x[i / 2][i % 2 * 2] != 0) {
          acc.v[i / 2][n][i % 2 * 2] += x[i / 2][i % 2 * 2] * low_half<T>(v);
          acc.v[i / 2][n][i % 2 * 2 + 1] += x[i / 2][i % 2 * 2] * high_half<T>(v);
        }
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int k = warp_index(); k < N; k += W)
    if (row_is_nonfinite(V, k))
      for (int c = lane_index() * 2; c < C; c += 64)
        word_at(V.at(k, c)) = 0;
  __syncthreads();
}

template <class T, int R, int N, int C, int P, int W>
ATTN_INLINE void mma_ab_guarded(Frag<R, C, W> &acc, const Frag<R, N, W> &s, const Smem<T, N, C, P> &V,
                                bool when = true) {
  // P is converted first: it takes half the registers during the scan.
  unsigned p[(N + 15) / 16][R / W / 16][4];
#pragma unroll
  for (int k = 0; k < N; k += 16)
#pragma unroll
    for (int m = 0; m < s.Blocks; ++m)
      pack_depth<T>(p[k / 16][m], s, m, k);
  if (when) { // uniform in the CTA
    const ThreadMap<Smem<T, N, C, P>> thread_map;
    bool nonfinite = false;
#pragma unroll 2 // a loop: interleaved with the exponentials before it, the scan would take more registers
    for (int pass = 0; pass < thread_map.Passes; ++pass)
      if (thread_map.has(pass))
        nonfinite |= !all_finite<T>(unit_at(V.at(thread_map.row + pass * thread_map.Step, thread_map.unit * 8)));
    if (__syncthreads_or(nonfinite))
      add_nonfinite_rows(acc, p, V);
  }
#pragma unroll
  for (int k = 0; k < N; k += 16)
    mma_depth(acc, p[k / 16], V, k);
}

} // namespace attn
