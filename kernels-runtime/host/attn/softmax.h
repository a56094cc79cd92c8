// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations on scores between the two products. Rows are in the vector lanes, so all of them are element-wise over
// vectors of rows, key by key.
#pragma once

#include "attn/fragment.h"

namespace attn {

// The element-wise mask. `is_visible` may load from run-time arrays, so it is called for live rows only: behind them
// there may be nothing to load.
template <int M, int N, int W, class First, class F>
ATTN_TILE_OP void apply_mask(Frag<M, N, W> &scores, First q0, int k0, F is_visible) {
  const int live = scores.live;
  for (int n = 0; n < N; ++n) {
    float *__restrict s = scores.data + n * M;
#pragma omp simd
    for (int r = 0; r < live; ++r)
      s[r] = is_visible(query_of(q0, r), k0 + n) ? s[r] : -infinity;
  }
}
// Keys in rows, queries in columns.
template <int M, int N, int W, class F>
ATTN_TILE_OP void apply_mask_transposed(Frag<M, N, W> &scores, int k0, int q0, F is_visible) {
  apply_mask(scores, k0, q0, is_visible);
}

// Columns are pairs of a key and one of `Heads` packed KV heads: a row sees only keys of its own KV head.
template <int M, int N, int W, int H, int Heads, class F>
ATTN_TILE_OP void apply_mask(Frag<M, N, W> &scores, Pairs<H> q0, Pairs<Heads> k0, F is_visible) {
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < scores.live; ++r) {
      float &s = scores.data[n * M + r];
      const bool own = r % H / (H / Heads) == n % Heads;
      s = own && is_visible(query_of(q0, r), query_of(k0, n)) ? s : -infinity;
    }
}

// One step of the online softmax: scores become probabilities relative to the new maximum, and the softmax state and
// the output so far are rescaled to that maximum.
//
// Maxima are those of unscaled scores, which are compared before they are scaled: the difference of two close floats is
// exact, however large they are, whereas a scaled maximum is rounded.
//
// NaN needs no branch: it is ignored by every maximum (`larger`), and makes its own probability NaN and through it the
// sum. A maximum of -Inf means that no key has been visible yet; 0 replaces it, so that exp2(-Inf - 0) is 0 where -Inf
// - -Inf would be NaN.
template <int M, int N, int D, int W>
ATTN_TILE_OP void online_softmax(Frag<M, N, W> &scores, SoftmaxState<M, W> &row, Frag<M, D, W> &out, float scale) {
  row.live = scores.live;
  // `scale` is positive: masked scores stay -Inf.
  for (int r = 0; r < scores.live; r += lanes) {
    float *s = scores.data + r;
    // Two chains: the latency of a comparison is two vectors' worth of work.
    Lanes top = splat(-infinity), other = top;
    for (int n = 0; n < N; n += 2) {
      top = larger(at(s + n * M), top);
      other = larger(at(s + (n + 1) * M), other);
    }
    const Lanes old = at(row.maximum + r);
    const Lanes maximum = larger(larger(top, other), old);
    const Lanes base = maximum == -infinity ? Lanes{} : maximum;
    Lanes sum = Lanes{};
    for (int n = 0; n < N; ++n) {
      const Lanes p = exp2((at(s + n * M) - base) * scale);
      at(s + n * M) = p;
      sum += p;
    }
    const Lanes factor = exp2((old - base) * scale);
    at(row.maximum + r) = maximum;
    at(row.sum + r) = at(row.sum + r) * factor + sum;
    // Maxima settle after a few tiles; a row whose maximum has not changed is not rescaled.
    for (int i = 0; i < lanes && r + i < scores.live; ++i)
      if (factor[i] != 1.f)
        for (int c = 0; c < D; c += lanes)
          at(out.data + (r + i) * D + c) *= factor[i];
  }
}

// The sink of row r; of a pair, that of its head.
template <class F> ATTN_HELPER float sink_of(F f, int, int) { return f(); }
template <int H, class F> ATTN_HELPER float sink_of(F f, Pairs<H> first, int r) { return f(first.head + r % H); }

// Clamps to finite floats: an overflow would read as "no visible key".
ATTN_HELPER float finite(double x) {
  const double largest = 3.4028234663852886e38;
  return float(x > largest ? largest : x < -largest ? -largest : x);
}

// The scale before it was multiplied by log2(e) and rounded. NOTE: a float again, so that 1 is exactly 1: next to a
// score of 1e9, a relative error of 1e-8 is 10.
ATTN_HELPER double natural_scale(float scale) { return float(scale * 0.6931471805599453); }

// ln(sum of exp(score)) of a row with visible keys; its maximum is unscaled.
ATTN_HELPER float log_sum_exp(float maximum, float sum, float scale) {
  return finite(maximum * natural_scale(scale) + natural_log(sum));
}

// Adds a sink, a key without a value whose score is in natural units, to the maximum and the sum of a row, which may
// have no other visible key. A score of -Inf is no sink.
ATTN_HELPER float join_sink(float score, float &maximum, float &sum, float scale) {
  if (score == -infinity)
    return 1.f;
  const double natural = natural_scale(scale), log2e = 1.4426950408889634;
  const float old = maximum;
  if (score > old * natural)
    maximum = finite(score / natural);
  const float factor = old == maximum ? 1.f : exp2((old - maximum) * scale);
  sum = sum * factor + exp2(float((score - maximum * natural) * log2e));
  return factor;
}
template <int M, int D, int W, class First, class F>
ATTN_TILE_OP void add_sink(Frag<M, D, W> &out, SoftmaxState<M, W> &row, float scale, First first, F f) {
  for (int r = 0; r < M; ++r) {
    const float factor = join_sink(sink_of(f, first, r), row.maximum[r], row.sum[r], scale);
    for (int c = 0; c < D; c += lanes)
      at(out.data + r * D + c) *= factor;
  }
}

// Output / sum. A sum of 0 means that no key was visible, and the result is 0; a NaN sum is not equal to 0 and yields
// NaN.
template <int M, int D, int W> ATTN_TILE_OP void normalize(Frag<M, D, W> &out, const SoftmaxState<M, W> &row) {
  for (int r = 0; r < row.live; ++r) {
    const float sum = row.sum[r], inverse = 1.f / sum;
    for (int c = 0; c < D; c += lanes)
      at(out.data + r * D + c) = sum == 0.f ? Lanes{} : at(out.data + r * D + c) * inverse;
  }
}

} // namespace attn
