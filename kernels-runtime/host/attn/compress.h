// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Means of windows of tokens (attn.compress).
#pragma once
#include "attn/windows.h"

namespace attn {

// A head of a compressed row.
template <int Dim, int Length, class T> ATTN_HELPER void store_mean(T *to, const T *from, long long row) {
  float sums[Dim] = {};
  for (int i = 0; i < Length; ++i)
    ATTN_VECTORIZE
  for (int c = 0; c < Dim; ++c)
    sums[c] += to_float(from[i * row + c]);
  for (int c = 0; c < Dim; ++c)
    round_to(to[c], sums[c] * (1.0f / Length));
}

// Rows of the result from `first` on, packed: those behind the last sequence are 0.
template <int Heads, int Dim, int Length, int Stride, int Threads, class T>
ATTN_TILE_OP void compress_rows(T *y, const T *x, const int *cu, const int *cu_c, long long y_row, long long y_head,
                                long long x_row, long long x_head, int batch, int first, int rows) {
  for (int r = first; r < first + rows; ++r) {
    const int b = sequence_of(cu_c, batch, r);
    for (int h = 0; h < Heads; ++h) {
      T *to = y + r * y_row + h * y_head;
      if (b < 0)
        for (int c = 0; c < Dim; ++c)
          round_to(to[c], 0.0f);
      else
        store_mean<Dim, Length>(to, x + (cu[b] + (long long)(r - cu_c[b]) * Stride) * x_row + h * x_head, x_row);
    }
  }
}

// The same of dense sequences, of which each has `windows` rows of the result.
template <int Heads, int Dim, int Length, int Stride, int Threads, class T>
ATTN_TILE_OP void compress_dense_rows(T *y, const T *x, long long y_batch, long long y_row, long long y_head,
                                      long long x_batch, long long x_row, long long x_head, int windows, int first,
                                      int rows) {
  for (int r = first; r < first + rows; ++r)
    for (int h = 0; h < Heads; ++h)
      store_mean<Dim, Length>(y + r / windows * y_batch + r % windows * y_row + h * y_head,
                              x + r / windows * x_batch + (long long)(r % windows) * Stride * x_row + h * x_head,
                              x_row);
}

} // namespace attn
