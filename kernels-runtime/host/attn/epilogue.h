// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results to global memory. `rows` are valid and `write_rows` exist: the difference is padding, which reads as "no
// visible key" (0 and -Inf). Nothing behind these rows or beside the head dim is touched, since it belongs to another
// tile or to the caller.
#pragma once

#include "attn/softmax.h"

namespace attn {

template <int Dim, class T, class Stride> ATTN_HELPER void clear_rows(T *to, Stride stride, int from, int end) {
  for (int r = from; r < end; ++r)
    for (int c = 0; c < Dim; ++c)
      to[offset_of(stride, r) + c] = T{};
}

template <int Dim, class T, class Stride, int M, int D, int W>
ATTN_TILE_OP void store(T *to, Stride stride, const Frag<M, D, W> &out, int rows, int write_rows) {
  const int live = min(rows, M);
  for (int r = 0; r < live; ++r) {
    T *__restrict dst = to + offset_of(stride, r);
    const float *__restrict src = out.data + r * D;
    ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) round_to(dst[c], src[c]);
  }
  clear_rows<Dim>(to, stride, max(live, 0), min(write_rows, M));
}

// Result of a row: its LSE, or, for a split, its softmax state, to be combined. `maximum` is -Inf in a split without
// visible keys.
struct PartialState {
  float *maximum, *sum;
};
ATTN_HELPER void store_row_state(float *lse, long long at, bool empty, float maximum, float sum, float scale) {
  lse[at] = empty ? -infinity : log_sum_exp(maximum, sum, scale);
}
ATTN_HELPER void store_row_state(const PartialState &to, long long at, bool empty, float maximum, float sum, float) {
  // If a row's only scores are NaN, there is no maximum, and the sum is NaN.
  to.maximum[at] = empty ? -infinity : maximum == -infinity ? 0.f : maximum;
  to.sum[at] = sum;
}

// The maximum is unscaled. Without visible keys the sum is 0.
template <class Lse, class Stride, int M, int W>
ATTN_TILE_OP void store_lse(const Lse &to, Stride stride, const SoftmaxState<M, W> &row, float scale, int rows,
                            int write_rows) {
  const int live = min(rows, M), end = min(write_rows, M);
  for (int r = 0; r < end; ++r) {
    const bool empty = r >= live || row.sum[r] == 0.f;
    store_row_state(to, offset_of(stride, r), empty, row.maximum[r], row.sum[r], scale);
  }
}
template <class Lse, int M, int W>
ATTN_HELPER void store_lse(const Lse &to, const SoftmaxState<M, W> &row, float scale, int rows, int write_rows) {
  store_lse(to, 1ll, row, scale, rows, write_rows);
}

// Continues from a partial result: acc becomes O times the sum. A row without visible keys keeps its state.
template <int Dim, int M, int D, int W>
ATTN_TILE_OP void resume(Frag<M, D, W> &acc, SoftmaxState<M, W> &row, const float *o, long long stride,
                         const float *maximum, const float *sum, int rows) {
  row.live = min(rows, M); // also if no tile of keys follows
  for (int r = 0; r < row.live; ++r) {
    if (maximum[r] == -infinity)
      continue;
    row.maximum[r] = maximum[r], row.sum[r] = sum[r];
    for (int c = 0; c < Dim; ++c)
      acc.data[r * D + c] = o[r * stride + c] * sum[r];
  }
}

template <int Dim, int M, int D, int W>
ATTN_TILE_OP void add_rows(Frag<M, D, W> &acc, const float *from, long long stride, int rows) {
  for (int r = 0; r < min(rows, M); ++r)
    for (int c = 0; c < Dim; ++c)
      acc.data[r * D + c] += from[r * stride + c];
}

// For tiles that consist of padding.
template <int Dim, int M, int Threads, class T, class Stride>
ATTN_TILE_OP void store_padding(T *to, Stride stride, int write_rows) {
  clear_rows<Dim>(to, stride, 0, min(write_rows, M));
}

template <int M, int Threads, class Stride>
ATTN_TILE_OP void store_padding_lse(float *to, Stride stride, int write_rows) {
  for (int r = 0; r < min(write_rows, M); ++r)
    to[offset_of(stride, r)] = -infinity;
}
template <int M, int Threads> ATTN_HELPER void store_padding_lse(float *to, int write_rows) {
  store_padding_lse<M, Threads>(to, 1ll, write_rows);
}

} // namespace attn
