// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single-pass (not online) softmax for one CTA per sequence, as on GPUs: the softmax state is complete before the
// product with V.
#pragma once

#include "attn/mma.h"
#include "attn/softmax.h"

namespace attn {

// A subtile: Rows rows from the first on, Cols columns from `column` on. It is a copy; an op that fills a subtile reads
// it through the same subtile.
template <int Rows, int Cols, class T, int R, int C, int P>
ATTN_TILE_OP Smem<T, Rows, Cols, P> subtile(const Smem<T, R, C, P> &tile, int column = 0) {
  Smem<T, Rows, Cols, P> result;
  result.live = min(tile.live, Rows);
  result.dim = clamp(tile.dim - column, 0, Cols);
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Cols; ++c)
      result.rows[r * Cols + c] = tile.rows[r * C + column + c];
  return result;
}

template <int Dim, class T, int R, int C, int P, class Stride>
ATTN_TILE_OP void copy_async_once(Smem<T, R, C, P> &to, const T *from, Stride stride, int rows) {
  copy_async<Dim>(to, from, stride, rows);
}

// Is all of V finite? Copies are synchronous.
template <class T, int N, int D, int P> ATTN_TILE_OP bool wait_finite(const Smem<T, N, D, P> &V) {
  float zero = 0.f;
  for (int i = 0; i < N * D; ++i)
    zero += V.rows[i] * 0.f;
  return zero == 0.f;
}

template <int M, int N, int W> ATTN_TILE_OP void softmax(Frag<M, N, W> &scores, SoftmaxState<M, W> &row, float scale) {
  Frag<M, lanes, W> none;
  none.live = 0;
  clear(none);
  online_softmax(scores, row, none, scale);
}

// Row sums are complete, since a row is in one lane.
template <int M, int W> ATTN_TILE_OP void reduce_row_sums(SoftmaxState<M, W> &) {}
template <int M, int D, int W> ATTN_TILE_OP void divide(Frag<M, D, W> &out, const SoftmaxState<M, W> &row) {
  normalize(out, row);
}

// Probabilities stay in float32 here.
template <class T, int M, int N, int W> struct RegisterOperand : Frag<M, N, W> {};
template <class T, int M, int N, int W>
ATTN_TILE_OP void convert(RegisterOperand<T, M, N, W> &p, const Frag<M, N, W> &s) {
  static_cast<Frag<M, N, W> &>(p) = s;
}

} // namespace attn
