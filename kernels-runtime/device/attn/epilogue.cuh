// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results to global memory. Rows past write_rows belong to somebody else or to nobody and are never touched.
#pragma once
#include "attn/softmax.cuh"

namespace attn {

// In a quad: lane t's x[j] becomes lane j's x[t]. Turns four pieces of which every lane holds two columns into one piece a lane with all eight.
ATTN_INLINE void transpose_quad(unsigned (&x)[4]) {
  const int lane = lane_index();
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (!(j & bit)) {
        const bool upper = lane & bit;
        const unsigned got = __shfl_xor_sync(~0u, upper ? x[j] : x[j + bit], bit);
        x[j] = upper ? got : x[j], x[j + bit] = upper ? x[j + bit] : got;
      }
}

// Rounded rows [0, rows), zero rows [rows, write_rows), 16 bytes a store.
template <int Dim, class T, int R, int C, int W>
ATTN_INLINE void store(T *dst, long long stride, const Frag<R, C, W> &acc, int rows, int write_rows) {
  const int t = lane_index() % 4;
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const int r = acc.row(i);
    T *to = dst + r * stride + t * 8;
#pragma unroll
    for (int n = 0; n < Dim / 8; n += 4) {
      unsigned x[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float *v = acc.v[i / 2][min(n + j, acc.Pieces - 1)] + i % 2 * 2;
        x[j] = pack<T>(v[0], v[1]);
      }
      transpose_quad(x);
      if (n + 4 <= Dim / 8 || n + t < Dim / 8) {
        if (r < rows) *(uint4 *)(to + n * 8) = {x[0], x[1], x[2], x[3]};
        else if (r < write_rows) *(uint4 *)(to + n * 8) = {0, 0, 0, 0};
      }
    }
  }
}

// ln(sum of exp(score)); -inf for a row without keys and for padding. The row's sum is complete after normalize().
template <int R, int W> ATTN_INLINE void store_lse(float *dst, const Rows<R, W> &row, float /*scale*/, int rows, int write_rows) {
  if (lane_index() % 4 != 0) return;
#pragma unroll
  for (int i = 0; i < 2 * row.Blocks; ++i) {
    const int r = row.row(i);
    const bool empty = r >= rows || row.sum[i] == 0;
    if (r < write_rows) dst[r] = empty ? -infinity() : log_sum_exp(row.max[i], row.sum[i]);
  }
}

// For tiles made of padding only.
template <int Dim, int Rows, int Threads, class T> ATTN_INLINE void store_zero(T *dst, long long stride, int write_rows) {
  const int count = min(Rows, write_rows) * (Dim / 8);
  for (int i = threadIdx.x; i < count; i += Threads) *(uint4 *)(dst + i / (Dim / 8) * stride + i % (Dim / 8) * 8) = {0, 0, 0, 0};
}
template <int Rows, int Threads> ATTN_INLINE void store_minus_inf(float *dst, int write_rows) {
  for (int r = threadIdx.x; r < min(Rows, write_rows); r += Threads) dst[r] = -infinity();
}

}  // namespace attn
