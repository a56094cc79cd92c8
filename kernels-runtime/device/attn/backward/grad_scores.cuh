// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element-wise part of the backward pass, between the matrix products. Fragments of scores have queries in their
// rows and keys in their columns; with Transposed it is the reverse.
#pragma once
#include "attn/backward/row_statistics.cuh"
#include "attn/mma/fragment.cuh"
#include "attn/softmax/modify.cuh"

namespace attn {

// Calls f with the statistic of its query, at address(query), for each element: one number for each row, or with
// Transposed two numbers for each piece.
template <bool Transposed, int R, int N, int W, class Address, class F>
ATTN_INLINE void with_row_statistics(Frag<R, N, W> &s, Address address, F f) {
  if (Transposed) {
    // Opaque: otherwise the addresses of all pieces stay in registers across tiles.
    const unsigned first = optimization_barrier(address(s.col(0)));
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n) {
      const float2 known = shared_floats(first + n * 32);
#pragma unroll
      for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          f(m, n, i, i % 2 ? known.y : known.x);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 2 * s.Blocks; ++i) {
      const float known = shared_float(address(s.row(i)));
#pragma unroll
      for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c)
          f(i / 2, n, i % 2 * 2 + c, known);
    }
  }
}

// `scale` is positive, so scores of hidden pairs, which are -inf, become 0.
template <bool Transposed, int R, int N, int W, int K>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const RowStatistics<K> &stats, float scale) {
  with_row_statistics<Transposed>(
      s, [&](int i) { return stats.lse(i); },
      [&](int m, int n, int i, float lse) { s.v[m][n][i] = exp2(fmaf(s.v[m][n][i], scale, -lse)); });
}

// The modified score of element (m, n, i), whose unmodified score is `score`.
template <int R, int N, int W, class First, class F>
ATTN_INLINE ModifiedScore modified_at(const Frag<R, N, W> &s, float score, int m, int n, int i, First row0, int column0,
                                      F f) {
  const int base = column0 + s.col(0);
  return apply(f, score, row0, s.row(2 * m + i / 2), base + n * 8 + i % 2, base, float(n * 8 + i % 2));
}
// Probabilities of modified scores; `weighted` gets probability times derivative.
template <bool Transposed, bool AllVisible = false, int R, int N, int W, int K, class First, class F>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, Frag<R, N, W> &weighted, const RowStatistics<K> &stats, float scale,
                               First row0, int column0, F f) {
  with_row_statistics<Transposed>(
      s, [&](int i) { return stats.lse(i); },
      [&](int m, int n, int i, float lse) {
        const float score = s.v[m][n][i];
        const ModifiedScore modified = modified_at(s, score, m, n, i, row0, column0, f);
        s.v[m][n][i] = !AllVisible && score == -infinity() ? 0 : exp2(fmaf(modified.score, scale, -lse));
        // The derivative of a hidden score need not be a number.
        weighted.v[m][n][i] = !AllVisible && s.v[m][n][i] == 0 ? 0 : s.v[m][n][i] * modified.slope;
      });
}
// Access to a register operand: pair i of depth step k (16 columns), and the pair that contains element (m, n, i).
// Pairs are set and read in order. (A Stash in copy/store_ring.cuh has the same functions, and is passed as Place,
// too.)
template <class T, int R, int N, int W>
ATTN_INLINE void set_pair(RegisterOperand<T, R, N, W> &operand, int m, int k, int i, unsigned pair) {
  operand.v[m][k][i] = pair;
}
template <class T, int R, int N, int W>
ATTN_INLINE unsigned pair_of(const RegisterOperand<T, R, N, W> &operand, int m, int n, int i) {
  return operand.v[m][n / 2][n % 2 * 2 + i / 2];
}

// What a kernel keeps of the derivative (slope) of a modified score. WeightedSlope: the probability times the slope.
// PlainSlope: the slope. Polynomial: the slope as a polynomial of the number that `small` returns in its place, with
// the coefficients from the constant on.
struct WeightedSlope {
  static ATTN_INLINE float number(float p, float slope) { return p * slope; }
  template <class T> static ATTN_INLINE unsigned pair(float low, float high) { return pack<T>(low, high); }
};
struct PlainSlope : WeightedSlope {
  static ATTN_INLINE float number(float, float slope) { return slope; }
};
template <int N> struct Polynomial {
  float coefficients[N];
  static ATTN_INLINE float number(float, float x) { return x; }
  template <class T> ATTN_INLINE unsigned pair(float low, float high) const {
    const unsigned x = pack<T>(low, high);
    unsigned sum = pack<T>(coefficients[N - 1], coefficients[N - 1]);
#pragma unroll
    for (int i = N - 2; i >= 0; --i)
      sum = fma_pair<T>(sum, x, pack<T>(coefficients[i], coefficients[i]));
    return sum;
  }
};

// As above, with `weighted` as a register operand or a stash, since a float32 fragment would not fit in registers.
// AllVisible: no score is hidden and every slope is finite.
template <bool Transposed, bool AllVisible = false, template <class, int, int, int> class Place, class T, int R, int N,
          int W, int K, class First, class F, class Kept = WeightedSlope>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, Place<T, R, N, W> &weighted, const RowStatistics<K> &stats,
                               float scale, First row0, int column0, F f, Kept kept = Kept()) {
  float before = 0;
  with_row_statistics<Transposed>(
      s, [&](int i) { return stats.lse(i); },
      [&](int m, int n, int i, float lse) {
        const float score = s.v[m][n][i];
        const ModifiedScore modified = modified_at(s, score, m, n, i, row0, column0, f);
        // With a scale of 1 there is no multiplication, so the compiler can fuse the subtraction into the product that
        // computes a small score. (With 128 queries it arranges the code differently, which is slower.)
        const bool fuses = AllVisible && N <= 64 && scale == 1;
        const float p = exp2(!AllVisible && score == -infinity() ? score
                             : fuses                             ? modified.score - lse
                                                                 : fmaf(modified.score, scale, -lse));
        const float now = !AllVisible && p == 0 ? 0 : kept.number(p, modified.slope);
        s.v[m][n][i] = p;
        if (i % 2)
          set_pair(weighted, m, n / 2, n % 2 * 2 + i / 2, kept.template pair<T>(before, now));
        before = now;
      });
}
// Uses `small`, a cheaper formula for scores below `within` in size, if all scores of the warp are below it. A hidden
// score is not.
template <bool Transposed, class Place, int R, int N, int W, int K, class First, class Small, class F>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, Place &weighted, const RowStatistics<K> &stats, float scale,
                               First row0, int column0, float within, Small small, F f) {
  if (__any_sync(~0u, largest_of(s) >= within))
    probabilities<Transposed>(s, weighted, stats, scale, row0, column0, f);
  else
    probabilities<Transposed, true>(s, weighted, stats, scale, row0, column0, small);
}
// As probabilities(), but keeps slopes in place of weighted probabilities. `slope`: what is kept for small scores.
template <bool Transposed, class Place, int R, int N, int W, int K, class First, class F>
ATTN_INLINE void probabilities_and_slopes(Frag<R, N, W> &s, Place &slopes, const RowStatistics<K> &stats, float scale,
                                          First row0, int column0, F f) {
  probabilities<Transposed>(s, slopes, stats, scale, row0, column0, f, PlainSlope());
}
template <bool Transposed, class Place, int R, int N, int W, int K, class First, class Slope, class Small, class F>
ATTN_INLINE void probabilities_and_slopes(Frag<R, N, W> &s, Place &slopes, const RowStatistics<K> &stats, float scale,
                                          First row0, int column0, float within, Slope slope, Small small, F f) {
  if (__any_sync(~0u, largest_of(s) >= within))
    probabilities_and_slopes<Transposed>(s, slopes, stats, scale, row0, column0, f);
  else
    probabilities<Transposed, true>(s, slopes, stats, scale, row0, column0, small, slope);
}
template <bool Transposed, int R, int N, int W, int K, class First, class F>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const RowStatistics<K> &stats, float scale, First row0, int column0,
                               F f) {
  Frag<R, N, W> unused;
  probabilities<Transposed>(s, unused, stats, scale, row0, column0, f);
}

// x becomes p * (x - delta), or p * (x * by - delta), where `by` undoes the power of two that probabilities are
// multiplied by.
template <bool Transposed, int R, int N, int W, int K>
ATTN_INLINE void grad_scores(Frag<R, N, W> &x, const Frag<R, N, W> &p, const RowStatistics<K> &stats, float by = 1) {
  with_row_statistics<Transposed>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) { x.v[m][n][i] = p.v[m][n][i] * fmaf(x.v[m][n][i], by, -delta); });
}

// As above, with probabilities as a register operand: rounded, two in a register.
template <bool Transposed, template <class, int, int, int> class Place, class T, int R, int N, int W, int K>
ATTN_INLINE void grad_scores(Frag<R, N, W> &x, Place<T, R, N, W> &p, const RowStatistics<K> &stats, float by = 1) {
  with_row_statistics<Transposed>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) {
        const unsigned pair = pair_of(p, m, n, i);
        x.v[m][n][i] = (i % 2 ? high_half<T>(pair) : low_half<T>(pair)) * fmaf(x.v[m][n][i], by, -delta);
      });
}

// As above, with the slopes of modified scores as a second operand of the same kind.
template <bool Transposed, template <class, int, int, int> class Place, class T, class Slopes, int R, int N, int W,
          int K>
ATTN_INLINE void grad_scores(Frag<R, N, W> &x, Place<T, R, N, W> &p, Slopes &slopes, const RowStatistics<K> &stats) {
  unsigned pair = 0;
  with_row_statistics<Transposed>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) {
        if (i % 2 == 0)
          pair = multiply_pair<T>(pair_of(p, m, n, i), pair_of(slopes, m, n, i));
        x.v[m][n][i] = (i % 2 ? high_half<T>(pair) : low_half<T>(pair)) * (x.v[m][n][i] - delta);
      });
}

template <int R, int N, int W> ATTN_INLINE void scale(Frag<R, N, W> &f, float by) {
#pragma unroll
  for (int m = 0; m < f.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < f.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f.v[m][n][i] *= by;
}

} // namespace attn
