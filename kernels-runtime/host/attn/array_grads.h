// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of score-modifier arrays and sinks: tiles of dS are accumulated and reduced per array entry, and another
// kernel adds the partial results. Fragments are column-major with rows in the vector lanes.
#pragma once

#include "attn/backward.h"
#include "attn/fragment.h"

namespace attn {

template <int M, int N, int W> ATTN_TILE_OP void accumulate(Frag<M, N, W> &acc, const Frag<M, N, W> &grad) {
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < grad.live; ++r)
      acc.data[n * M + r] += grad.data[n * M + r];
}

template <int M, int N, int W> ATTN_TILE_OP void store_row_sums(float *to, const Frag<M, N, W> &acc) {
  for (int r = 0; r < M; ++r) {
    float sum = 0.f;
    for (int n = 0; n < N; ++n)
      sum += acc.data[n * M + r];
    to[r] = sum;
  }
}

template <int M, int N, int W>
ATTN_TILE_OP void store_corner(float *to, long long stride, int rows, int cols, const Frag<M, N, W> &acc) {
  for (int r = 0; r < min(rows, M); ++r)
    for (int n = 0; n < min(cols, N); ++n)
      to[r * stride + n] = acc.data[n * M + r];
}

template <int N, int W, class Place>
ATTN_TILE_OP void store_diagonal_sums(float *to, long long pitch, const Frag<N, N, W> &acc, const Place &) {
  for (int t = 0; t < 2 * N; ++t) {
    const int diagonal = t - N;
    float sum = 0.f;
    for (int r = max(0, -diagonal); r < N - max(0, diagonal); ++r)
      sum += acc.data[(r + diagonal) * N + r];
    (diagonal < 0 ? to : to + pitch)[t] = sum;
  }
}

ATTN_HELPER void clear_entry(float *to) { *to = 0.f; }
ATTN_HELPER void copy_number(float *to, const float *from) { *to = *from; }
ATTN_TILE_OP void add_total(float *to, const float *from, int count) {
  float sum = 0.f;
  for (int i = 0; i < count; ++i)
    sum += from[i];
  *to += sum;
}
// Subtracts the sum over rows of exp(sink - LSE) * delta. A fully masked row has an LSE of +Inf and contributes
// nothing.
ATTN_TILE_OP void add_sink_grad(float *to, const float *statistics, long long pitch, int count, float sink) {
  float sum = 0.f;
  for (int i = 0; i < count; ++i)
    sum += exp2(at_most_zero(sink * 1.442695041f - statistics[i])) * statistics[i + pitch];
  *to -= sum;
}

} // namespace attn
