// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single-pass (not online) softmax for one CTA per sequence: all keys are in one tile, so the softmax state is complete
// before the product with V, whose columns may be computed in parts. There are many CTAs of a few microseconds each, so
// the number of instructions and registers decides.
#pragma once
#include "attn/copy.cuh"
#include "attn/mma.cuh"
#include "attn/softmax.cuh"

namespace attn {

// A subtile: Rows rows from the first on, Cols columns from `column` on.
template <int Rows, int Cols, class T, int R, int C, int P>
ATTN_INLINE Smem<T, Rows, Cols, P> subtile(const Smem<T, R, C, P> &tile, int column = 0) {
  static_assert(Rows <= R && Cols <= C);
  Smem<T, Rows, Cols, P> result(0);
  result.address = tile.at(0, column);
  return result;
}

// copy_async() for a tile that is loaded once: each thread has a pointer of its own and advances it. NOTE: opaque.
// Otherwise the compiler, short of registers, recomputes addresses in each pass, which is half of a short kernel's
// instructions.
template <int Dim, class T, int R, int C, int P>
ATTN_INLINE void copy_async_once(const Smem<T, R, C, P> &dst, const T *src, long long stride, int rows) {
  static_assert(Dim % 8 == 0 && Dim <= C && C - Dim < 16);
  const ThreadMap<Smem<T, R, C, P>> thread_map;
  const T *from = src + (thread_map.row * stride + thread_map.chunk * 8);
  unsigned to = dst.at(thread_map.row, thread_map.chunk * 8);
  int left = (Dim == C || thread_map.chunk < Dim / 8) ? rows - thread_map.row : 0;
  asm volatile("" : "+l"(from), "+r"(to), "+r"(left));
#pragma unroll
  for (int p = 0; p < thread_map.Passes; ++p)
    asm volatile(
        "{\n.reg .pred has;\nsetp.ne.b32 has, %3, 0;\n@has cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n}" ::
            "r"(to + p * thread_map.Step * P * 2),
        "l"(from + p * thread_map.Step * stride), "r"(p * thread_map.Step < left ? 16 : 0), "r"(int(thread_map.has(p)))
        : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Pairs need an address for each row in any case.
template <int Dim, class T, int R, int C, int P, int H>
ATTN_INLINE void copy_async_once(const Smem<T, R, C, P> &dst, const T *src, PairStride<H> stride, int rows) {
  copy_async<Dim>(dst, src, stride, rows);
}

// wait(), and tests whether all of V is finite. Each thread tests what it has copied itself, so there is no further
// barrier. If V is not finite, products have to be guarded, since 0 * NaN is not 0. The result is uniform in the CTA.
template <class T, int N, int C, int P> ATTN_INLINE bool wait_finite(const Smem<T, N, C, P> &V) {
  asm volatile("cp.async.wait_all;" ::: "memory");
  const ThreadMap<Smem<T, N, C, P>> thread_map;
  const unsigned from = V.at(thread_map.row, thread_map.chunk * 8);
  unsigned test = 0;
#pragma unroll
  for (int p = 0; p < thread_map.Passes; ++p)
    if (thread_map.has(p)) {
      const uint4 x = chunk_at(from + p * thread_map.Step * P * 2);
      test = times_zero<T>(x.x, times_zero<T>(x.y, times_zero<T>(x.z, times_zero<T>(x.w, test))));
    }
  return !__syncthreads_or(!is_zero(test));
}

// Scores of complete rows become probabilities; their per-lane sums may include a sink and are reduced by
// reduce_row_sums(). Needs scale > 0.
template <int R, int N, int W> ATTN_INLINE void softmax(Frag<R, N, W> &s, SoftmaxState<R, W> &row, float scale) {
  float top[R / W / 8], rescale_factor[R / W / 8];
  bool moves[R / W / 8];
  lane_max(top, s);
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    moves[i] = true;
  quad_maxima(top, row);
  if (is_raw(row, top, scale)) {
    float at[R / W / 8];
    raise_raw_references(rescale_factor, at, s, row, top, moves, scale);
    return exponentiate(s, row, at, scale);
  }
  raise_references(rescale_factor, row, top, moves, scale);
  exponentiate(s, row, row.max, scale);
}

// normalize() in two steps: sums once, and a division for each part of the columns.
template <int R, int W> ATTN_INLINE void reduce_row_sums(SoftmaxState<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * row.Blocks; ++i)
    row.sum[i] = quad_sum(row.sum[i]);
}
template <int R, int C, int W> ATTN_INLINE void divide(Frag<R, C, W> &acc, const SoftmaxState<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const float factor = row.sum[i] == 0 ? 0 : reciprocal(row.sum[i]);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      acc.v[i / 2][n][i % 2 * 2] *= factor, acc.v[i / 2][n][i % 2 * 2 + 1] *= factor;
  }
}

// Converts probabilities to the left operand of products, once for all parts of the columns.
template <class T, int R, int N, int W>
ATTN_INLINE void convert(RegisterOperand<T, R, N, W> &p, const Frag<R, N, W> &s) {
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N; k += 16)
      pack_depth<T>(p.v[m][k / 16], s, m, k);
}
template <class T, int R, int N, int C, int P, int W>
ATTN_INLINE void mma_ab(Frag<R, C, W> &acc, const RegisterOperand<T, R, N, W> &p, const Smem<T, N, C, P> &V) {
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
