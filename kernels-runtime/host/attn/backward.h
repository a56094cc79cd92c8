// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element-wise part of the backward pass, between the matrix products. A tile of scores has its rows in the vector
// lanes: queries, or keys with Transposed. Statistics of queries are then a vector or a broadcast.
#pragma once

#include "attn/fragment.h"
#include "attn/modify.h"

namespace attn {

// Row statistics: for each query row the LSE in base 2 and delta, which is subtracted from the gradients of its
// probabilities.
template <int Count> struct RowStatistics {
  explicit RowStatistics(int = 0) {}
  alignas(64) float lse[Count];
  alignas(64) float delta[Count];
};

ATTN_HELPER void barrier() {}

// LSE in base 2, as probabilities need it: +Inf for a fully masked row, finite for other rows. As it is a float32,
// exp(score - LSE) may exceed 1 by much where it is large, so exponents are clamped. A NaN stays one.
ATTN_HELPER float lse_in_base_2(float lse) {
  const float x = lse * 1.442695041f;
  return lse == -infinity ? infinity : x < -3.4028234663852886e38f ? -3.4028234663852886e38f : x;
}
ATTN_HELPER Lanes at_most_zero(Lanes x) { return x > Lanes{} ? Lanes{} : x; }
ATTN_HELPER float at_most_zero(float x) { return x > 0.f ? 0.f : x; }

// A fully masked row and a row past the end get an LSE of +Inf, so their probabilities are 0. Stride: of the LSE and
// its gradient.
template <int Dim, int M, int Threads, int Stride = 1, class T>
ATTN_TILE_OP void preprocess(float *to, long long pitch, const T *out, long long out_stride, const T *grad,
                             long long grad_stride, const float *lse, const float *grad_lse, int rows) {
  for (int r = 0; r < M; ++r) {
    const float lse_of_row = r < rows ? lse[r * Stride] : -infinity;
    const bool sees = lse_of_row != -infinity;
    float sum = 0.f;
    for (int c = 0; sees && c < Dim; ++c)
      sum += to_float(out[r * out_stride + c]) * to_float(grad[r * grad_stride + c]);
    to[r] = sees ? lse_in_base_2(lse_of_row) : infinity;
    to[r + pitch] = sees ? sum - (grad_lse ? grad_lse[r * Stride] : 0.f) : 0.f;
  }
}

// The same with delta as the caller has it.
template <int M, int Threads, int Stride = 1>
ATTN_TILE_OP void preprocess(float *to, long long pitch, const float *delta, const float *lse, int rows) {
  for (int r = 0; r < M; ++r) {
    const float lse_of_row = r < rows ? lse[r * Stride] : -infinity;
    const bool sees = lse_of_row != -infinity;
    to[r] = sees ? lse_in_base_2(lse_of_row) : infinity;
    to[r + pitch] = sees ? delta[r * Stride] : 0.f;
  }
}

template <int N> ATTN_TILE_OP void copy_row_statistics(RowStatistics<N> &to, const float *from, long long pitch) {
  for (int r = 0; r < N; ++r) {
    to.lse[r] = from[r];
    to.delta[r] = from[r + pitch];
  }
}

template <bool Transposed> ATTN_HELPER Lanes known(const float *values, int row, int column) {
  return Transposed ? splat(values[column]) : at(values + row);
}

// `scale` is positive, so masked scores, which are -Inf, become 0.
template <bool Transposed, int M, int N, int W, int K>
ATTN_TILE_OP void probabilities(Frag<M, N, W> &scores, const RowStatistics<K> &stats, float scale) {
  for (int r = 0; r < scores.live; r += lanes)
    for (int n = 0; n < N; ++n) {
      float *s = scores.data + n * M + r;
      at(s) = exp2(at_most_zero(at(s) * scale - known<Transposed>(stats.lse, r, n)));
    }
}

// Probabilities of modified scores; `weighted` gets probability times derivative.
template <bool Transposed, int M, int N, int W, int K, class First, class F>
ATTN_TILE_OP void probabilities(Frag<M, N, W> &scores, Frag<M, N, W> &weighted, const RowStatistics<K> &stats,
                                float scale, First row0, int column0, F f) {
  weighted.live = scores.live;
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < scores.live; ++r) {
      float &s = scores.data[n * M + r];
      const ModifiedScore modified = apply(f, s, row0, r, column0 + n);
      weighted.data[n * M + r] = s == -infinity ? 0.f : modified.slope;
      s = s == -infinity ? s : modified.score;
    }
  probabilities<Transposed>(scores, stats, scale);
  for (int n = 0; n < N; ++n) // where a probability is 0, the derivative need not be a number
    for (int r = 0; r < scores.live; ++r) {
      const float weight = scores.data[n * M + r];
      weighted.data[n * M + r] = weight == 0.f ? 0.f : weight * weighted.data[n * M + r];
    }
}
template <bool Transposed, int M, int N, int W, int K, class First, class F>
ATTN_TILE_OP void probabilities(Frag<M, N, W> &scores, const RowStatistics<K> &stats, float scale, First row0,
                                int column0, F f) {
  for (int n = 0; n < N; ++n)
    for (int r = 0; r < scores.live; ++r) {
      float &s = scores.data[n * M + r];
      s = s == -infinity ? s : apply(f, s, row0, r, column0 + n).score;
    }
  probabilities<Transposed>(scores, stats, scale);
}

// x becomes p * (x - delta).
template <bool Transposed, int M, int N, int W, int K>
ATTN_TILE_OP void grad_scores(Frag<M, N, W> &grad, const Frag<M, N, W> &p, const RowStatistics<K> &stats) {
  for (int r = 0; r < grad.live; r += lanes)
    for (int n = 0; n < N; ++n) {
      float *x = grad.data + n * M + r;
      at(x) = at(p.data + n * M + r) * (at(x) - known<Transposed>(stats.delta, r, n));
    }
}

template <int M, int N, int W> ATTN_TILE_OP void scale(Frag<M, N, W> &frag, float by) {
  for (int i = 0; i < M * N; i += lanes)
    at(frag.data + i) *= by;
}

} // namespace attn
