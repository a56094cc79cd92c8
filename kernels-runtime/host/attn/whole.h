// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence whose keys are one tile, as on GPUs: rows' states are whole before
// the product with V.
#pragma once

#include "attn/product.h"
#include "attn/softmax.h"

namespace attn {

// Rows and columns of a tile, from its first row on. A copy of what is there, in
// a place of its own: whoever fills a part reads it as that part.
template <int Rows, int Cols, class T, int R, int C, int P>
ATTN_VERB Smem<T, Rows, Cols, P> part(const Smem<T, R, C, P> &whole, int column = 0) {
  Smem<T, Rows, Cols, P> result;
  result.live = min(whole.live, Rows);
  result.dim = clamp(whole.dim - column, 0, Cols);
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Cols; ++c)
      result.rows[r * Cols + c] = whole.rows[r * C + column + c];
  return result;
}

template <int Dim, class T, int R, int C, int P, class Stride>
ATTN_VERB void copy_once(Smem<T, R, C, P> &to, const T *from, Stride stride, int rows) {
  copy_async<Dim>(to, from, stride, rows);
}

// Whether all of V is finite; copies are done when they return.
template <class T, int N, int D, int P> ATTN_VERB bool wait_finite(const Smem<T, N, D, P> &V) {
  float zero = 0.f;
  for (int i = 0; i < N * D; ++i)
    zero += V.rows[i] * 0.f;
  return zero == 0.f;
}

template <int M, int N, int W> ATTN_VERB void softmax(Frag<M, N, W> &scores, Rows<M, W> &row, float scale) {
  Frag<M, lanes, W> none;
  none.live = 0;
  clear(none);
  softmax_step(scores, row, none, scale);
}

// Sums are complete: a row is one lane's.
template <int M, int W> ATTN_VERB void complete(Rows<M, W> &) {}
template <int M, int D, int W> ATTN_VERB void divide(Frag<M, D, W> &out, const Rows<M, W> &row) { normalize(out, row); }

// Probabilities are never rounded here.
template <class T, int M, int N, int W> struct Held : Frag<M, N, W> {};
template <class T, int M, int N, int W> ATTN_VERB void round(Held<T, M, N, W> &p, const Frag<M, N, W> &s) {
  static_cast<Frag<M, N, W> &>(p) = s;
}

} // namespace attn
