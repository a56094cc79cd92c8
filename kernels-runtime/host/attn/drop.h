// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout on tiles of scores, whose rows are queries or, turned, keys.
#pragma once

#include "attn/backward.h"
#include "attn/draws.h"

namespace attn {

template <int M, int N, int W, class First, class Column, class D>
ATTN_VERB void drop(Frag<M, N, W> &s, First row0, Column column0, D draws, int below, float factor = 1.f) {
  for (int r = 0; r < s.live; ++r) {
    const Draws own = draws_of(draws, row0, r);
    const int q = query_of(row0, r);
    for (int n = 0; n < N; ++n) {
      float &x = s.data[n * M + r];
      x = own.drops(q, query_of(column0, n), below) ? 0.f : x * factor;
    }
  }
}
template <int M, int N, int W>
ATTN_VERB void drop_turned(Frag<M, N, W> &s, int row0, int column0, Draws draws, int below, float factor = 1.f) {
  for (int r = 0; r < s.live; ++r)
    for (int n = 0; n < N; ++n) {
      float &x = s.data[n * M + r];
      x = draws.drops(column0 + n, row0 + r, below) ? 0.f : x * factor;
    }
}

// Those of dropped pairs become negative.
template <int M, int N, int W>
ATTN_VERB void mark_dropped_turned(Frag<M, N, W> &s, int row0, int column0, Draws draws, int below) {
  for (int r = 0; r < s.live; ++r)
    for (int n = 0; n < N; ++n)
      if (draws.drops(column0 + n, row0 + r, below))
        s.data[n * M + r] = -s.data[n * M + r];
}

// Gradients of scores from probabilities that are marked, which become 0.
template <bool Turned, int M, int N, int W, int K>
ATTN_VERB void drop_grads(Frag<M, N, W> &grad, Frag<M, N, W> &p, const Frag<M, N, W> &weighted,
                          const Statistics<K> &stats, float factor) {
  for (int r = 0; r < grad.live; ++r)
    for (int n = 0; n < N; ++n) {
      const int at = n * M + r;
      const bool marked = __builtin_signbit(p.data[at]);
      const float weight = &weighted == &p ? abs(p.data[at]) : weighted.data[at];
      const float delta = stats.delta[Turned ? n : r];
      grad.data[at] = weight * ((marked ? 0.f : grad.data[at] * factor) - delta);
      p.data[at] = marked ? 0.f : p.data[at];
    }
}
template <bool Turned, int M, int N, int W, int K>
ATTN_VERB void drop_grads(Frag<M, N, W> &grad, Frag<M, N, W> &p, const Statistics<K> &stats, float factor) {
  drop_grads<Turned>(grad, p, p, stats, factor);
}

} // namespace attn
