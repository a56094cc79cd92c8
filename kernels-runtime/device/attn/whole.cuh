// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence whose keys are one tile: nothing is carried from tile to tile, so rows' states are whole before the
// product with V, which may be made a part of the columns at a time. Blocks are many and live for microseconds; what
// counts is how few instructions and registers they need.
#pragma once
#include "attn/copy.cuh"
#include "attn/mma.cuh"
#include "attn/softmax.cuh"

namespace attn {

// Rows and columns of a tile, from its first row on.
template <int Rows, int Cols, class T, int R, int C, int P>
ATTN_INLINE Smem<T, Rows, Cols, P> part(const Smem<T, R, C, P> &whole, int column = 0) {
  static_assert(Rows <= R && Cols <= C);
  Smem<T, Rows, Cols, P> result(0);
  result.address = whole.at(0, column);
  return result;
}

// As copy_async(), for a tile that is brought once: each thread has a pointer of its own and steps it. NOTE: opaque,
// since worked out anew for each pass, as the compiler does it where registers are few, addresses are half of a short
// block's instructions.
template <int Dim, class T, int R, int C, int P>
ATTN_INLINE void copy_once(const Smem<T, R, C, P> &dst, const T *src, long long stride, int rows) {
  static_assert(Dim % 8 == 0 && Dim <= C && C - Dim < 16);
  const Walk<Smem<T, R, C, P>> walk;
  const T *from = src + (walk.row * stride + walk.chunk * 8);
  unsigned to = dst.at(walk.row, walk.chunk * 8);
  int left = (Dim == C || walk.chunk < Dim / 8) ? rows - walk.row : 0;
  asm volatile("" : "+l"(from), "+r"(to), "+r"(left));
#pragma unroll
  for (int p = 0; p < walk.Passes; ++p)
    asm volatile(
        "{\n.reg .pred has;\nsetp.ne.b32 has, %3, 0;\n@has cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n}" ::
            "r"(to + p * walk.Step * P * 2),
        "l"(from + p * walk.Step * stride), "r"(p * walk.Step < left ? 16 : 0), "r"(int(walk.has(p)))
        : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Pairs have an address for each row in any case.
template <int Dim, class T, int R, int C, int P, int H>
ATTN_INLINE void copy_once(const Smem<T, R, C, P> &dst, const T *src, PairStride<H> stride, int rows) {
  copy_async<Dim>(dst, src, stride, rows);
}

// As wait(); is all of V finite? Each thread looks at what it has copied itself, so it costs no further barrier. Where
// V is not, 0 * V is not 0, and products have to be guarded. The same answer in the whole block.
template <class T, int N, int C, int P> ATTN_INLINE bool wait_finite(const Smem<T, N, C, P> &V) {
  asm volatile("cp.async.wait_all;" ::: "memory");
  const Walk<Smem<T, N, C, P>> walk;
  const unsigned from = V.at(walk.row, walk.chunk * 8);
  unsigned test = 0;
#pragma unroll
  for (int p = 0; p < walk.Passes; ++p)
    if (walk.has(p)) {
      const uint4 x = chunk_at(from + p * walk.Step * P * 2);
      test = times_zero<T>(x.x, times_zero<T>(x.y, times_zero<T>(x.z, times_zero<T>(x.w, test))));
    }
  return !__syncthreads_or(!is_zero(test));
}

// Scores of whole rows become probabilities and join the sums, which may have a sink's; they are yet to be completed.
// Needs scale > 0.
template <int R, int N, int W> ATTN_INLINE void softmax(Frag<R, N, W> &s, Rows<R, W> &row, float scale) {
  float top[R / W / 8], shrink[R / W / 8];
  bool moves[R / W / 8];
  largest(top, s);
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    moves[i] = true;
  quad_maxima(top, row);
  if (is_raw(row, top, scale)) {
    float at[R / W / 8];
    raise_raw(shrink, at, s, row, top, moves, scale);
    return exponentiate(s, row, at, scale);
  }
  raise_all(shrink, row, top, moves, scale);
  exponentiate(s, row, row.max, scale);
}

// What normalize() does, in two: sums once, and a division for each part of the columns.
template <int R, int W> ATTN_INLINE void complete(Rows<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * row.Blocks; ++i)
    row.sum[i] = quad_sum(row.sum[i]);
}
template <int R, int C, int W> ATTN_INLINE void divide(Frag<R, C, W> &acc, const Rows<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const float factor = row.sum[i] == 0 ? 0 : reciprocal(row.sum[i]);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      acc.v[i / 2][n][i % 2 * 2] *= factor, acc.v[i / 2][n][i % 2 * 2 + 1] *= factor;
  }
}

// Probabilities as the left operand of products, once for all parts of the columns.
template <class T, int R, int N, int W> ATTN_INLINE void round(Held<T, R, N, W> &p, const Frag<R, N, W> &s) {
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N; k += 16)
      pack_depth<T>(p.v[m][k / 16], s, m, k);
}
template <class T, int R, int N, int C, int P, int W>
ATTN_INLINE void mma_pv(Frag<R, C, W> &acc, const Held<T, R, N, W> &p, const Smem<T, N, C, P> &V) {
#pragma unroll
  for (int k = 0; k < N; k += 16) {
    unsigned a[R / W / 16][4];
#pragma unroll
    for (int m = 0; m < acc.Blocks; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[m][i] = p.v[m][k / 16][i];
    mma_depth(acc, a, V, k);
  }
}

} // namespace attn
