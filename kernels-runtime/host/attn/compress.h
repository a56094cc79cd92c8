// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Means of windows of tokens (attn.compress).
#pragma once
#include "attn/rows.h"
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

// Windows of a sequence that have a token.
struct WindowsOfToken {
  int first, end;
};
template <int Length, int Stride> ATTN_HELPER WindowsOfToken windows_with(int token, int windows) {
  return {token < Length ? 0 : (token - Length) / Stride + 1, min(token / Stride + 1, windows)};
}

// The gradient of a head of a token: of its windows, and what is added.
template <int Dim, int Length, int Added, class T, int Count>
ATTN_HELPER void store_token_grad(T *to, const T *windows, long long row, WindowsOfToken of, const Arguments<Count> &a,
                                  int added_at, const DenseRow &token, int h) {
  float sums[Dim] = {};
  for (int i = of.first; i < of.end; ++i)
    add_row<Dim>(sums, windows + i * row);
  for (int c = 0; c < Dim; ++c)
    sums[c] *= 1.0f / Length;
  for (int n = 0; n < Added; ++n)
    add_row<Dim>(sums,
                 a.template pointer<const float>(added_at + 4 * n) + offset_of(a, added_at + 4 * n + 1, token, h));
  store_row<Dim>(to, sums);
}

// Gradients of tokens, packed. The other arguments are: gradients of windows and their strides; strides of the result;
// for each tensor that is added, its pointer and strides; cu_seqlens of tokens and of windows; batch; the CTA's first
// token and how many it has.
template <int Heads, int Dim, int Length, int Stride, int Added, int Threads, class T, class... Rest>
ATTN_TILE_OP void compress_grads(T *dx, Rest... rest) {
  constexpr int sizes = 7 + 4 * Added;
  const auto a = arguments_of(rest...);
  const int *cu = a.template pointer<const int>(sizes), *cu_c = a.template pointer<const int>(sizes + 1);
  const int batch = a.value[sizes + 2], first = a.value[sizes + 3], rows = a.value[sizes + 4];
  for (int r = first; r < first + rows; ++r) {
    const int b = sequence_of(cu, batch, r), before = b < 0 ? 0 : cu_c[b];
    const DenseRow token(r, 0x7fffffff);
    const WindowsOfToken of =
        b < 0 ? WindowsOfToken{0, 0}
              : windows_with<Length, Stride>(r - cu[b], windows_of<Length, Stride>(cu[b + 1] - cu[b]));
    for (int h = 0; h < Heads; ++h)
      store_token_grad<Dim, Length, Added>(dx + offset_of(a, 4, token, h),
                                           a.template pointer<const T>(0) + before * a.value[2] + h * a.value[3],
                                           a.value[2], of, a, 7, token, h);
  }
}

// The same of dense sequences of `seqlen` tokens, in place of cu_seqlens.
template <int Heads, int Dim, int Length, int Stride, int Added, int Threads, class T, class... Rest>
ATTN_TILE_OP void compress_dense_grads(T *dx, Rest... rest) {
  constexpr int sizes = 7 + 4 * Added;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  for (int number = first; number < first + rows; ++number)
    for (int h = 0; h < Heads; ++h) {
      const DenseRow token(number, seqlen);
      store_token_grad<Dim, Length, Added>(
          dx + offset_of(a, 4, token, h), a.template pointer<const T>(0) + token.batch * a.value[1] + h * a.value[3],
          a.value[2], windows_with<Length, Stride>(token.row, windows_of<Length, Stride>(seqlen)), a, 7, token, h);
    }
}

} // namespace attn
