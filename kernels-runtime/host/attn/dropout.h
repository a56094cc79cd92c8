// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout on tiles of scores, whose rows are queries or, transposed, keys.
#pragma once

#include "attn/backward.h"
#include "attn/dropout_state.h"

namespace attn {

// A first row or column that need not be a multiple of 16 (which matters on a GPU).
struct Unaligned {
  int at;
  operator int() const { return at; }
};

template <int M, int N, int W, class First, class Column, class D>
ATTN_TILE_OP void dropout(Frag<M, N, W> &s, First row0, Column column0, D state, int threshold, float factor = 1.f) {
  for (int r = 0; r < s.live; ++r) {
    const DropoutState own = state_of_row(state, row0, r);
    const int q = query_of(row0, r);
    for (int n = 0; n < N; ++n) {
      float &x = s.data[n * M + r];
      x = own.is_dropped(q, query_of(column0, n), threshold) ? 0.f : x * factor;
    }
  }
}
template <int M, int N, int W>
ATTN_TILE_OP void dropout_transposed(Frag<M, N, W> &s, int row0, int column0, DropoutState state, int threshold,
                                     float factor = 1.f) {
  for (int r = 0; r < s.live; ++r)
    for (int n = 0; n < N; ++n) {
      float &x = s.data[n * M + r];
      x = state.is_dropped(column0 + n, row0 + r, threshold) ? 0.f : x * factor;
    }
}

// Dropout in the sign bit: dropped probabilities become negative.
template <int M, int N, int W>
ATTN_TILE_OP void dropout_in_sign_transposed(Frag<M, N, W> &s, int row0, int column0, DropoutState state,
                                             int threshold) {
  for (int r = 0; r < s.live; ++r)
    for (int n = 0; n < N; ++n)
      if (state.is_dropped(column0 + n, row0 + r, threshold))
        s.data[n * M + r] = -s.data[n * M + r];
}

// Gradients of scores from probabilities whose sign marks dropped pairs; these become 0.
template <bool Transposed, int M, int N, int W, int K>
ATTN_TILE_OP void dropout_grad_scores(Frag<M, N, W> &grad, Frag<M, N, W> &p, const Frag<M, N, W> &weighted,
                                      const RowStatistics<K> &stats, float factor) {
  for (int r = 0; r < grad.live; ++r)
    for (int n = 0; n < N; ++n) {
      const int at = n * M + r;
      const bool marked = __builtin_signbit(p.data[at]);
      const float weight = &weighted == &p ? abs(p.data[at]) : weighted.data[at];
      const float delta = stats.delta[Transposed ? n : r];
      grad.data[at] = weight * ((marked ? 0.f : grad.data[at] * factor) - delta);
      p.data[at] = marked ? 0.f : p.data[at];
    }
}
template <bool Transposed, int M, int N, int W, int K>
ATTN_TILE_OP void dropout_grad_scores(Frag<M, N, W> &grad, Frag<M, N, W> &p, const RowStatistics<K> &stats,
                                      float factor) {
  dropout_grad_scores<Transposed>(grad, p, p, stats, factor);
}

} // namespace attn
