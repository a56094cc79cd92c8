// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results leave the block. `rows` are valid and `writeRows` exist: the
// difference is padding, which must read as "no visible key" (0 and -Inf), and
// nothing behind it or beside the head dim may be touched, since it is another
// tile's or the caller's.
#pragma once

#include "attn/places.h"

namespace attn {

template <int Dim, class T, class Stride>
ATTN_HELPER void zeroRows(T *to, Stride stride, int from, int end) {
  for (int r = from; r < end; ++r)
    for (int c = 0; c < Dim; ++c)
      to[offset_of(stride, r) + c] = T{};
}

template <int Dim, class T, class Stride, int M, int D, int W>
ATTN_VERB void store(T *to, Stride stride, const Frag<M, D, W> &out,
                     int rows, int writeRows) {
  const int live = min(rows, M);
  for (int r = 0; r < live; ++r) {
    T *__restrict dst = to + offset_of(stride, r);
    const float *__restrict src = out.data + r * D;
    ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) fromFloat(dst[c], src[c]);
  }
  zeroRows<Dim>(to, stride, max(live, 0), min(writeRows, M));
}

// The maximum is in base 2, scaled; the sum is not. With no visible key the sum
// is 0 and its logarithm already the -Inf that is asked for.
template <class Stride, int M, int W>
ATTN_VERB void store_lse(float *to, Stride stride, const Rows<M, W> &row,
                         float scale, int rows, int writeRows) {
  (void)scale; // part of the maximum
  const int live = min(rows, M), end = min(writeRows, M);
  for (int r = 0; r < live; ++r)
    to[offset_of(stride, r)] =
        row.sum[r] == 0.f ? -infinity
                              : float(row.maximum[r] * 0.6931471805599453 +
                                      naturalLog(row.sum[r]));
  for (int r = max(live, 0); r < end; ++r)
    to[offset_of(stride, r)] = -infinity;
}
template <int M, int W>
ATTN_HELPER void store_lse(float *to, const Rows<M, W> &row, float scale,
                           int rows, int writeRows) {
  store_lse(to, 1ll, row, scale, rows, writeRows);
}

// Tiles that are nothing but padding.
template <int Dim, int M, int Threads, class T, class Stride>
ATTN_VERB void store_zero(T *to, Stride stride, int writeRows) {
  zeroRows<Dim>(to, stride, 0, min(writeRows, M));
}

template <int M, int Threads, class Stride>
ATTN_VERB void store_minus_inf(float *to, Stride stride, int writeRows) {
  for (int r = 0; r < min(writeRows, M); ++r)
    to[offset_of(stride, r)] = -infinity;
}
template <int M, int Threads>
ATTN_HELPER void store_minus_inf(float *to, int writeRows) {
  store_minus_inf<M, Threads>(to, 1ll, writeRows);
}

} // namespace attn
