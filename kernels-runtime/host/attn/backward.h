// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a backward pass does between the products. A tile of scores has its rows in the
// lanes, be they queries or (`Turned`) keys; what is known of queries is then a vector or a
// broadcast.
#pragma once

#include "attn/modify.h"
#include "attn/places.h"

namespace attn {

// Of each query row: lse in base 2, and what is subtracted from gradients of its
// probabilities.
template <int Count> struct Statistics {
  explicit Statistics(int = 0) {}
  alignas(64) float lse[Count];
  alignas(64) float delta[Count];
};

ATTN_HELPER void barrier() {}

// LSE in base 2, as a row's probabilities need it: +Inf for a row that sees
// nothing, finite for others. It is a float32: where it is large, exp(score - LSE)
// may come out above 1, by much, so probabilities are bounded. A NaN stays one.
ATTN_HELPER float lseInBase2(float lse) {
  const float x = lse * 1.442695041f;
  return lse == -infinity ? infinity : x < -3.4028234663852886e38f ? -3.4028234663852886e38f : x;
}
ATTN_HELPER Lanes atMostZero(Lanes x) { return x > Lanes{} ? Lanes{} : x; }
ATTN_HELPER float atMostZero(float x) { return x > 0.f ? 0.f : x; }

// A row that sees nothing, or that is none, has an lse of +Inf: its probabilities are 0.
template <int Dim, int M, int Threads, class T>
ATTN_VERB void prepare(float *to, long long pitch, const T *out, long long outStride, const T *grad,
                       long long gradStride, const float *lse, const float *gradLse, int rows) {
  for (int r = 0; r < M; ++r) {
    const bool sees = r < rows && lse[r] != -infinity;
    float sum = 0.f;
    for (int c = 0; sees && c < Dim; ++c)
      sum += toFloat(out[r * outStride + c]) * toFloat(grad[r * gradStride + c]);
    to[r] = sees ? lseInBase2(lse[r]) : infinity;
    to[r + pitch] = sees ? sum - (gradLse ? gradLse[r] : 0.f) : 0.f;
  }
}

template <int N> ATTN_VERB void copy_statistics(Statistics<N> &to, const float *from, long long pitch) {
  for (int r = 0; r < N; ++r) {
    to.lse[r] = from[r];
    to.delta[r] = from[r + pitch];
  }
}

template <bool Turned> ATTN_HELPER Lanes known(const float *values, int row, int column) {
  return Turned ? splat(values[column]) : at(values + row);
}

// `scale` is positive, so hidden pairs, which are -Inf, become 0.
template <bool Turned, int M, int N, int W, int K>
ATTN_VERB void probabilities(Frag<M, N, W> &scores, const Statistics<K> &stats, float scale) {
  for (int r = 0; r < scores.live; r += lanes)
    for (int n = 0; n < N; ++n) {
      float *s = scores.data + n * M + r;
      at(s) = exp2(atMostZero(at(s) * scale - known<Turned>(stats.lse, r, n)));
    }
}

// The same of modified scores; `weighted` gets probability times derivative.
template <bool Turned, int M, int N, int W, int K, class First, class F>
ATTN_VERB void probabilities(Frag<M, N, W> &scores, Frag<M, N, W> &weighted, const Statistics<K> &stats, float scale,
                             First row0, int column0, F f) {
  weighted.live = scores.live;
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < scores.live; ++r) {
      float &s = scores.data[n * M + r];
      const Changed changed = apply(f, s, row0, r, column0 + n);
      weighted.data[n * M + r] = s == -infinity ? 0.f : changed.slope;
      s = s == -infinity ? s : changed.score;
    }
  probabilities<Turned>(scores, stats, scale);
  for (int n = 0; n < N; ++n) // where a weight is 0, the derivative need not be a number
    for (int r = 0; r < scores.live; ++r) {
      const float weight = scores.data[n * M + r];
      weighted.data[n * M + r] = weight == 0.f ? 0.f : weight * weighted.data[n * M + r];
    }
}
template <bool Turned, int M, int N, int W, int K, class First, class F>
ATTN_VERB void probabilities(Frag<M, N, W> &scores, const Statistics<K> &stats, float scale, First row0, int column0,
                             F f) {
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < scores.live; ++r) {
      float &s = scores.data[n * M + r];
      s = s == -infinity ? s : apply(f, s, row0, r, column0 + n).score;
    }
  probabilities<Turned>(scores, stats, scale);
}

// x becomes p * (x - delta).
template <bool Turned, int M, int N, int W, int K>
ATTN_VERB void grad_scores(Frag<M, N, W> &grad, const Frag<M, N, W> &p, const Statistics<K> &stats) {
  for (int r = 0; r < grad.live; r += lanes)
    for (int n = 0; n < N; ++n) {
      float *x = grad.data + n * M + r;
      at(x) = at(p.data + n * M + r) * (at(x) - known<Turned>(stats.delta, r, n));
    }
}

template <int M, int N, int W> ATTN_VERB void scale(Frag<M, N, W> &frag, float by) {
  for (int i = 0; i < M * N; i += lanes)
    at(frag.data + i) *= by;
}

} // namespace attn
