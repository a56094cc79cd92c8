// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Means of windows of tokens (attn.compress).
#pragma once
#include "attn/sparse/rows.cuh"
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

// Windows of a sequence that have a token.
struct WindowsOfToken {
  int first, end;
};
template <int Length, int Stride> ATTN_INLINE WindowsOfToken windows_with(int token, int windows) {
  return {token < Length ? 0 : (token - Length) / Stride + 1, min(token / Stride + 1, windows)};
}

// The gradient of a unit of a token: of its windows, and what is added.
template <int Length, int Stride, int Added, class T, int Count>
ATTN_INLINE void store_token_grad(T *to, const T *windows, long long row, WindowsOfToken of, const Arguments<Count> &a,
                                  int added_at, const DenseRow &token, int h, int column) {
  float sums[8] = {};
  for (int i = of.first; i < of.end; ++i)
    add_unit(sums, windows + i * row);
#pragma unroll
  for (int c = 0; c < 8; ++c)
    sums[c] *= 1.0f / Length;
#pragma unroll
  for (int n = 0; n < Added; ++n)
    add_unit(sums,
             a.template pointer<const float>(added_at + 4 * n) + offset_of(a, added_at + 4 * n + 1, token, h) + column);
  store_unit(to, sums);
}

// Gradients of tokens, packed. The other arguments are: gradients of windows and their strides; strides of the result;
// for each tensor that is added, its pointer and strides; cu_seqlens of tokens and of windows; batch; the CTA's first
// token and how many it has.
template <int Heads, int Dim, int Length, int Stride, int Added, int Threads, class T, class... Rest>
ATTN_INLINE void compress_grads(T *dx, Rest... rest) {
  constexpr int in_head = Dim / 8, in_row = Heads * in_head, sizes = 7 + 4 * Added;
  const auto a = arguments_of(rest...);
  const int *cu = a.template pointer<const int>(sizes), *cu_c = a.template pointer<const int>(sizes + 1);
  const int batch = a.value[sizes + 2], first = a.value[sizes + 3], rows = a.value[sizes + 4];
  for (int i = threadIdx.x; i < rows * in_row; i += Threads) {
    const int r = first + i / in_row, h = i % in_row / in_head, column = i % in_head * 8, b = sequence_of(cu, batch, r);
    const DenseRow token(r, 0x7fffffff);
    const int before = b < 0 ? 0 : cu_c[b];
    const WindowsOfToken of =
        b < 0 ? WindowsOfToken{0, 0}
              : windows_with<Length, Stride>(r - cu[b], windows_of<Length, Stride>(cu[b + 1] - cu[b]));
    store_token_grad<Length, Stride, Added>(dx + offset_of(a, 4, token, h) + column,
                                            a.template pointer<const T>(0) + before * a.value[2] + h * a.value[3] +
                                                column,
                                            a.value[2], of, a, 7, token, h, column);
  }
}

// The same of dense sequences of `seqlen` tokens, in place of cu_seqlens.
template <int Heads, int Dim, int Length, int Stride, int Added, int Threads, class T, class... Rest>
ATTN_INLINE void compress_dense_grads(T *dx, Rest... rest) {
  constexpr int in_head = Dim / 8, in_row = Heads * in_head, sizes = 7 + 4 * Added;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  for (int i = threadIdx.x; i < rows * in_row; i += Threads) {
    const int h = i % in_row / in_head, column = i % in_head * 8;
    const DenseRow token(first + i / in_row, seqlen);
    store_token_grad<Length, Stride, Added>(
        dx + offset_of(a, 4, token, h) + column,
        a.template pointer<const T>(0) + token.batch * a.value[1] + h * a.value[3] + column, a.value[2],
        windows_with<Length, Stride>(token.row, windows_of<Length, Stride>(seqlen)), a, 7, token, h, column);
  }
}

} // namespace attn
