// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element test of a partial tile.
#pragma once
#include "attn/blocks.cuh"
#include "attn/fragment.cuh"

namespace attn {

// Scores of pairs that f refuses become -inf. f is the mask's residual test as the compiler printed it, over absolute
// positions; it is inlined into a loop with rows outside, so that what depends on the row alone is worked out once a
// row.
template <int R, int N, int W, class First, class F> ATTN_INLINE void keep(Frag<R, N, W> &s, First q0, int k0, F f) {
  const float refused = -infinity();
#pragma unroll
  for (int i = 0; i < 2 * s.Blocks; ++i) {
    const int q = query_of(q0, s.row(i));
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        x = f(q, k0 + s.col(n) + c) ? x : refused;
      }
  }
}
// The same with keys in rows and queries in columns, which are outside: what depends on the query is worked out once
// for a thread's rows and not kept from one row to the next.
template <int R, int N, int W, class F> ATTN_INLINE void keep_turned(Frag<R, N, W> &s, int k0, int q0, F f) {
  const float refused = -infinity();
#pragma unroll
  for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int q = q0 + s.col(n) + c;
#pragma unroll
      for (int i = 0; i < 2 * s.Blocks; ++i) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        x = f(k0 + s.row(i), q) ? x : refused;
      }
    }
}

// Columns that are pairs of a key and one of M kv heads: a row's keys are those of its own.
template <int R, int N, int W, int H, int M, class F>
ATTN_INLINE void keep(Frag<R, N, W> &s, Pairs<H> q0, Pairs<M> k0, F f) {
  const float refused = -infinity();
#pragma unroll
  for (int i = 0; i < 2 * s.Blocks; ++i) {
    const int r = s.row(i), q = query_of(q0, r), own = r % H / (H / M);
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        const int column = s.col(n) + c;
        x = column % M == own && f(q, query_of(k0, column)) ? x : refused;
      }
  }
}

} // namespace attn
