// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The preprocess kernel: the LSE in base 2 and delta = rowsum(O * dO) of each query row.
#pragma once
#include "attn/backward/row_statistics.cuh"

namespace attn {

// Each lane loads 16 bytes, and a row takes as many lanes as its columns need. A row that sees no key and a row past
// the sequence's end get an LSE of +inf, so their probabilities are 0. Stride: of the LSE and its gradient; with one,
// kernels may visit tiles in which this residue has no rows.
template <int Dim, int Rows, int Threads, int Stride = 1, class T>
ATTN_INLINE void preprocess(float *to, long long pitch, const T *o, long long o_row, const T *grad, long long grad_row,
                            const float *lse, const float *grad_lse, int rows, int exponent = 0) {
  constexpr int Lanes = Dim > 128 ? 32 : Dim > 64 ? 16 : 8, RowsAtOnce = Threads / Lanes;
  static_assert(Dim <= 256 && Rows % RowsAtOnce == 0);
  if (Stride == 1 && rows <= 0)
    return;
  const int lane = threadIdx.x % Lanes;
#pragma unroll 2
  for (int r = threadIdx.x / Lanes; r < Rows; r += RowsAtOnce) {
    const bool valid = r < rows;
    const float lse_of_row = valid ? lse[r * Stride] : -infinity();
    float sum = 0;
    if (valid && lane < Dim / 8) {
      const uint4 x = *(const uint4 *)(o + r * o_row + lane * 8), y = *(const uint4 *)(grad + r * grad_row + lane * 8);
      const unsigned a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum = fmaf(low_half<T>(a[i]), low_half<T>(b[i]), fmaf(high_half<T>(a[i]), high_half<T>(b[i]), sum));
    }
    sum = sum_of_group<Lanes>(sum);
    if (lane == 0) {
      to[r] = lse_in_base_2(lse_of_row, exponent);
      to[r + pitch] = lse_of_row != -infinity() ? (sum - (grad_lse ? grad_lse[r * Stride] : 0)) * exp2(-exponent) : 0;
    }
  }
}

// The same with delta as the caller has it.
template <int Rows, int Threads, int Stride = 1>
ATTN_INLINE void preprocess(float *to, long long pitch, const float *delta, const float *lse, int rows,
                            int exponent = 0) {
  if (Stride == 1 && rows <= 0)
    return;
  for (int r = threadIdx.x; r < Rows; r += Threads) {
    const float lse_of_row = r < rows ? lse[r * Stride] : -infinity();
    to[r] = lse_in_base_2(lse_of_row, exponent);
    to[r + pitch] = lse_of_row != -infinity() ? delta[r * Stride] * exp2(-exponent) : 0;
  }
}

// Semaphores of dQ accumulation, one for each 64 rows: no tile has been added yet.
template <int Count> ATTN_INLINE void clear_semaphores(int *semaphores, int rows) {
  if (threadIdx.x < Count && int(threadIdx.x) * 64 < rows)
    semaphores[threadIdx.x] = 0;
}

} // namespace attn
