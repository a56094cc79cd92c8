// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of one-CTA-per-sequence kernels, which load each tile once.
#pragma once
#include "attn/copy/copy_async.cuh"

namespace attn {

// The first Rows rows of a tile, Cols columns from `column` on.
template <int Rows, int Cols, class T, int R, int C, int P>
ATTN_INLINE Smem<T, Rows, Cols, P> subtile(const Smem<T, R, C, P> &tile, int column = 0) {
  static_assert(Rows <= R && Cols <= C);
  Smem<T, Rows, Cols, P> result(0);
  result.address = tile.at(0, column);
  return result;
}

// copy_async() for a tile that is loaded once: each thread has its own 64-bit pointers. The empty statement makes them
// opaque: otherwise the compiler, short of registers, recomputes addresses in each pass, which is half of a short
// kernel's instructions.
template <int Dim, class T, int R, int C, int P>
ATTN_INLINE void copy_async_once(const Smem<T, R, C, P> &dst, const T *src, long long stride, int rows) {
  static_assert(Dim % 8 == 0 && Dim <= C && C - Dim < 16);
  const ThreadMap<Smem<T, R, C, P>> thread_map;
  const T *from = src + (thread_map.row * stride + thread_map.unit * 8);
  unsigned to = dst.at(thread_map.row, thread_map.unit * 8);
  int left = (Dim == C || thread_map.unit < Dim / 8) ? rows - thread_map.row : 0;
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
// Pairs need an address for each row anyway.
template <int Dim, class T, int R, int C, int P, int H>
ATTN_INLINE void copy_async_once(const Smem<T, R, C, P> &dst, const T *src, PairStride<H> stride, int rows) {
  copy_async<Dim>(dst, src, stride, rows);
}

// wait_copies_and_sync(), and tests whether all of V is finite. Each thread tests what it has copied itself, so there
// is no further barrier. If V is not finite, products have to be guarded, since 0 * NaN is not 0. The result is uniform
// in the CTA.
template <class T, int N, int C, int P> ATTN_INLINE bool wait_finite(const Smem<T, N, C, P> &V) {
  asm volatile("cp.async.wait_all;" ::: "memory");
  const ThreadMap<Smem<T, N, C, P>> thread_map;
  const unsigned from = V.at(thread_map.row, thread_map.unit * 8);
  unsigned test = 0;
#pragma unroll
  for (int p = 0; p < thread_map.Passes; ++p)
    if (thread_map.has(p)) {
      const uint4 x = unit_at(from + p * thread_map.Step * P * 2);
      test = times_zero<T>(x.x, times_zero<T>(x.y, times_zero<T>(x.z, times_zero<T>(x.w, test))));
    }
  return !__syncthreads_or(!is_zero(test));
}

} // namespace attn
