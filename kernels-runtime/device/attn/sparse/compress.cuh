// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Means of windows of tokens (attn.compress).
#pragma once
#include "attn/epilogue/gather_rows.cuh"
#include "attn/sparse/windows.cuh"

namespace attn {

// A unit of 8 columns of a compressed row.
template <int Length, class T> ATTN_INLINE void store_mean(T *to, const T *from, long long row) {
  float sums[8] = {};
#pragma unroll 8
  for (int i = 0; i < Length; ++i)
    add_unit(sums, from + i * row);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    sums[i] = sums[i] * (1.0f / Length);
  store_unit(to, sums);
}

// Rows of the result from `first` on, packed: those behind the last sequence are 0.
template <int Heads, int Dim, int Length, int Stride, int Threads, class T>
ATTN_INLINE void compress_rows(T *y, const T *x, const int *cu, const int *cu_c, long long y_row, long long y_head,
                               long long x_row, long long x_head, int batch, int first, int rows) {
  constexpr int in_head = Dim / 8, in_row = Heads * in_head;
  for (int i = threadIdx.x; i < rows * in_row; i += Threads) {
    const int r = first + i / in_row, h = i % in_row / in_head, column = i % in_head * 8;
    T *to = y + r * y_row + h * y_head + column;
    const int b = sequence_of(cu_c, batch, r);
    if (b < 0) {
      const float zeros[8] = {};
      store_unit(to, zeros);
    } else {
      const long long token = cu[b] + (long long)(r - cu_c[b]) * Stride;
      store_mean<Length>(to, x + token * x_row + h * x_head + column, x_row);
    }
  }
}

// The same of dense sequences, of which each has `windows` rows of the result.
template <int Heads, int Dim, int Length, int Stride, int Threads, class T>
ATTN_INLINE void compress_dense_rows(T *y, const T *x, long long y_batch, long long y_row, long long y_head,
                                     long long x_batch, long long x_row, long long x_head, int windows, int first,
                                     int rows) {
  constexpr int in_head = Dim / 8, in_row = Heads * in_head;
  for (int i = threadIdx.x; i < rows * in_row; i += Threads) {
    const int r = first + i / in_row, h = i % in_row / in_head, column = i % in_head * 8, b = r / windows,
              window = r % windows;
    store_mean<Length>(y + b * y_batch + window * y_row + h * y_head + column,
                       x + b * x_batch + (long long)window * Stride * x_row + h * x_head + column, x_row);
  }
}

} // namespace attn
