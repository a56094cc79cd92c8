// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results to global memory. `rows` are valid and `writeRows` exist: the difference is padding, which reads as "no
// visible key" (0 and -Inf). Nothing behind these rows or beside the head dim is touched, since it belongs to another
// tile or to the caller.
#pragma once

#include "attn/softmax.h"

namespace attn {

template <int Dim, class T, class Stride> ATTN_HELPER void zeroRows(T *to, Stride stride, int from, int end) {
  for (int r = from; r < end; ++r)
    for (int c = 0; c < Dim; ++c)
      to[offset_of(stride, r) + c] = T{};
}

template <int Dim, class T, class Stride, int M, int D, int W>
ATTN_TILE_OP void store(T *to, Stride stride, const Frag<M, D, W> &out, int rows, int writeRows) {
  const int live = min(rows, M);
  for (int r = 0; r < live; ++r) {
    T *__restrict dst = to + offset_of(stride, r);
    const float *__restrict src = out.data + r * D;
    ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) fromFloat(dst[c], src[c]);
  }
  zeroRows<Dim>(to, stride, max(live, 0), min(writeRows, M));
}

// Result of a row: its LSE, or, for a split, its softmax state, to be combined. `maximum` is -Inf in a split without
// visible keys.
struct PartialState {
  float *maximum, *sum;
};
ATTN_HELPER void storeRowState(float *lse, long long at, bool empty, float maximum, float sum, float scale) {
  lse[at] = empty ? -infinity : logSumExp(maximum, sum, scale);
}
ATTN_HELPER void storeRowState(const PartialState &to, long long at, bool empty, float maximum, float sum, float) {
  // If a row's only scores are NaN, there is no maximum, and the sum is NaN.
  to.maximum[at] = empty ? -infinity : maximum == -infinity ? 0.f : maximum;
  to.sum[at] = sum;
}

// The maximum is unscaled. Without visible keys the sum is 0.
template <class Lse, class Stride, int M, int W>
ATTN_TILE_OP void store_lse(const Lse &to, Stride stride, const SoftmaxState<M, W> &row, float scale, int rows,
                            int writeRows) {
  const int live = min(rows, M), end = min(writeRows, M);
  for (int r = 0; r < end; ++r) {
    const bool empty = r >= live || row.sum[r] == 0.f;
    storeRowState(to, offset_of(stride, r), empty, row.maximum[r], row.sum[r], scale);
  }
}
template <class Lse, int M, int W>
ATTN_HELPER void store_lse(const Lse &to, const SoftmaxState<M, W> &row, float scale, int rows, int writeRows) {
  store_lse(to, 1ll, row, scale, rows, writeRows);
}

// For tiles that consist of padding.
template <int Dim, int M, int Threads, class T, class Stride>
ATTN_TILE_OP void store_padding(T *to, Stride stride, int writeRows) {
  zeroRows<Dim>(to, stride, 0, min(writeRows, M));
}

template <int M, int Threads, class Stride>
ATTN_TILE_OP void store_padding_lse(float *to, Stride stride, int writeRows) {
  for (int r = 0; r < min(writeRows, M); ++r)
    to[offset_of(stride, r)] = -infinity;
}
template <int M, int Threads> ATTN_HELPER void store_padding_lse(float *to, int writeRows) {
  store_padding_lse<M, Threads>(to, 1ll, writeRows);
}

} // namespace attn
