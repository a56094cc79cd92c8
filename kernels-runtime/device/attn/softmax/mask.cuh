// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element-wise mask of a partial tile.
#pragma once
#include "attn/metadata/block_map.cuh"
#include "attn/mma/fragment.cuh"

namespace attn {

// Scores of pairs for which f(query, key) is false become -inf. f is what partial tiles have left to test of the mask.
// The loop over rows is outside, so that what depends on the row alone is computed once a row.
template <int R, int N, int W, class First, class F>
ATTN_INLINE void apply_mask(Frag<R, N, W> &s, First q0, int k0, F f) {
  const float hidden = -infinity();
#pragma unroll
  for (int i = 0; i < 2 * s.Blocks; ++i) {
    const int q = query_of(q0, s.row(i));
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        x = f(q, k0 + s.col(n) + c) ? x : hidden;
      }
  }
}
// The same with keys in rows and queries in columns: f(key, query). The loop over columns is outside, so that what
// depends on the query is computed once for the thread's rows and not kept in registers.
template <int R, int N, int W, class F> ATTN_INLINE void apply_mask_transposed(Frag<R, N, W> &s, int k0, int q0, F f) {
  const float hidden = -infinity();
#pragma unroll
  for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int q = q0 + s.col(n) + c;
#pragma unroll
      for (int i = 0; i < 2 * s.Blocks; ++i) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        x = f(k0 + s.row(i), q) ? x : hidden;
      }
    }
}

// Columns are pairs of a key and one of M packed KV heads: a row sees only keys of its own KV head.
template <int R, int N, int W, int H, int M, class F>
ATTN_INLINE void apply_mask(Frag<R, N, W> &s, Pairs<H> q0, Pairs<M> k0, F f) {
  const float hidden = -infinity();
#pragma unroll
  for (int i = 0; i < 2 * s.Blocks; ++i) {
    const int r = s.row(i), q = query_of(q0, r), own = r % H / (H / M);
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        const int column = s.col(n) + c;
        x = column % M == own && f(q, query_of(k0, column)) ? x : hidden;
      }
  }
}

} // namespace attn
