// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element-wise part of the backward pass, between the matrix products. Fragments of scores have queries in their
// rows and keys in their columns; with Transposed it is the reverse.
#pragma once
#include "attn/modify.cuh"
#include "attn/softmax.cuh"

namespace attn {

// Row statistics of a tile in shared memory: for each query row the LSE in base 2 and delta, which is subtracted from
// the gradients of the row's probabilities. All LSEs come first, then all deltas.
template <int Count> struct RowStatistics {
  static constexpr int Rows = Count, Bytes = 8 * Count;
  static constexpr bool ReadByLanes = true;
  unsigned address;

  ATTN_INLINE explicit RowStatistics(int offset)
      : address(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  static ATTN_INLINE RowStatistics at_address(unsigned address) {
    RowStatistics s(0);
    s.address = address;
    return s;
  }
  ATTN_INLINE unsigned lse(int row) const { return address + row * 4; }
  ATTN_INLINE unsigned delta(int row) const { return address + (Count + row) * 4; }
};

// NOTE: volatile, so that no read moves across a barrier.
ATTN_INLINE float shared_float(unsigned address) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address));
  return x;
}
ATTN_INLINE float2 shared_floats(unsigned address) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
  return x;
}

ATTN_INLINE void barrier() { __syncthreads(); }

// LSE in base 2, as probabilities need it: +inf for a fully masked row, finite for other rows. Both the LSE and the
// result are float32, so from kSureBelow on exp(score - LSE) could exceed 1 + 2^-10, and at an LSE of 1e9 it could be
// infinite. There the result is raised by the largest possible rounding error, 2.25 * 2^-24 of its size (rounding of
// LSE, of the product and of log2(e)). Probabilities are then at most 1 + 2^-10 and no loop has to clamp them. This
// requires scores that equal those of the forward pass bit for bit, which holds because the same products compute them.
// An LSE combined from several splits has been rounded more often: from 2^23 on, where a float32 has no fraction bits,
// four more half ulps cover that. Probabilities are multiplied by 2^exponent.
constexpr float kSureBelow = 8192, kFractionsBelow = 1 << 23;
ATTN_INLINE float lse_in_base_2(float lse, float exponent = 0) {
  constexpr float log2e = 1.442695041f, half_ulp = 5.96e-8f;
  if (lse == -infinity())
    return infinity();
  const float size = min(fabsf(lse) * log2e, kLargest);
  const float raise =
      fmaf(max(size - kSureBelow, 0.f), 2.25f * half_ulp, max(size - kFractionsBelow, 0.f) * (4 * half_ulp));
  return max(fmaf(lse, log2e, raise - exponent), -kLargest);
}

// Each lane loads 16 bytes, and a row takes as many lanes as its columns need. A fully masked row and a row past the
// sequence's end get an lse of +inf, so their probabilities are 0.
template <int Dim, int Rows, int Threads, class T>
ATTN_INLINE void preprocess(float *to, long long pitch, const T *o, long long o_row, const T *grad, long long grad_row,
                            const float *lse, const float *grad_lse, int rows, int exponent = 0) {
  constexpr int Lanes = Dim > 128 ? 32 : Dim > 64 ? 16 : 8, RowsAtOnce = Threads / Lanes;
  static_assert(Dim <= 256 && Rows % RowsAtOnce == 0);
  if (rows <= 0)
    return;
  const int lane = threadIdx.x % Lanes;
#pragma unroll 2
  for (int r = threadIdx.x / Lanes; r < Rows; r += RowsAtOnce) {
    const bool live = r < rows;
    const float lse_of_row = live ? lse[r] : -infinity();
    float sum = 0;
    if (live && lane < Dim / 8) {
      const uint4 x = *(const uint4 *)(o + r * o_row + lane * 8), y = *(const uint4 *)(grad + r * grad_row + lane * 8);
      const unsigned a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum = fmaf(low_half<T>(a[i]), low_half<T>(b[i]), fmaf(high_half<T>(a[i]), high_half<T>(b[i]), sum));
    }
    sum = sum_of_group<Lanes>(sum);
    if (lane == 0) {
      to[r] = lse_in_base_2(lse_of_row, exponent);
      to[r + pitch] = lse_of_row != -infinity() ? (sum - (grad_lse ? grad_lse[r] : 0)) * exp2(-exponent) : 0;
    }
  }
}

// Semaphores of the ordered dQ accumulation: no tile has been added yet.
template <int Count> ATTN_INLINE void clear_semaphores(int *turns, int rows) {
  if (threadIdx.x < Count && int(threadIdx.x) * 64 < rows)
    turns[threadIdx.x] = 0;
}

template <int N> ATTN_INLINE void copy_row_statistics(const RowStatistics<N> &to, const float *from, long long pitch) {
  for (int i = threadIdx.x; i < N / 2; i += blockDim.x) {
    const float *const x = i < N / 4 ? from + i * 4 : from + pitch + (i - N / 4) * 4;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to.address + i * 16), "l"(x) : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Calls f with the statistic at address(i) for each element: one number for each row, or with Transposed two numbers
// for each piece of columns.
template <bool Transposed, int R, int N, int W, class Address, class F>
ATTN_INLINE void with_row_statistics(Frag<R, N, W> &s, Address address, F f) {
  if (Transposed) {
    const unsigned first =
        optimization_barrier(address(s.col(0))); // otherwise sums with all offsets stay in registers across tiles
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

// `scale` is positive, so masked scores, which are -inf, become 0.
template <bool Transposed, int R, int N, int W, int K>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const RowStatistics<K> &stats, float scale) {
  with_row_statistics<Transposed>(
      s, [&](int i) { return stats.lse(i); },
      [&](int m, int n, int i, float lse) { s.v[m][n][i] = exp2(fmaf(s.v[m][n][i], scale, -lse)); });
}

// The modified score of element (m, n, i), whose raw score is `score`.
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
        weighted.v[m][n][i] =
            !AllVisible && s.v[m][n][i] == 0
                ? 0
                : s.v[m][n][i] * modified.slope; // the derivative of a masked score need not be a number
      });
}
// Access to a register operand: pair i of depth step k (16 columns), and the pair that contains element (m, n, i).
// Pairs are set and read in order.
template <class T, int R, int N, int W>
ATTN_INLINE void set_pair(RegisterOperand<T, R, N, W> &operand, int m, int k, int i, unsigned pair) {
  operand.v[m][k][i] = pair;
}
template <class T, int R, int N, int W>
ATTN_INLINE unsigned pair_of(const RegisterOperand<T, R, N, W> &operand, int m, int n, int i) {
  return operand.v[m][n / 2][n % 2 * 2 + i / 2];
}

// What is kept of the derivative (slope) of a modified score: probability times slope,
struct WeightedSlope {
  static ATTN_INLINE float number(float p, float slope) { return p * slope; }
  template <class T> static ATTN_INLINE unsigned pair(float low, float high) { return pack<T>(low, high); }
};
// the slope itself,
struct PlainSlope : WeightedSlope {
  static ATTN_INLINE float number(float, float slope) { return slope; }
};
// or this polynomial of the number that `small` returns in place of the slope.
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

// As above, with `weighted` as a register operand, since a float32 fragment would not fit in registers. AllVisible: no
// score is masked and every slope is finite.
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
        // computes a small score. (With 128 queries the generated code differs and is slower.)
        const bool joins = AllVisible && N <= 64 && scale == 1;
        const float p = exp2(!AllVisible && score == -infinity() ? score
                             : joins                             ? modified.score - lse
                                                                 : fmaf(modified.score, scale, -lse));
        const float now = !AllVisible && p == 0 ? 0 : kept.number(p, modified.slope);
        s.v[m][n][i] = p;
        if (i % 2)
          set_pair(weighted, m, n / 2, n % 2 * 2 + i / 2, kept.template pair<T>(before, now));
        before = now;
      });
}
// Uses `small`, a cheaper formula for scores below `within`, if all scores of the warp are below it. A masked score
// counts as large.
template <bool Transposed, class Place, int R, int N, int W, int K, class First, class Small, class F>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, Place &weighted, const RowStatistics<K> &stats, float scale,
                               First row0, int column0, float within, Small small, F f) {
  if (__any_sync(~0u, largest_of(s) >= within))
    probabilities<Transposed>(s, weighted, stats, scale, row0, column0, f);
  else
    probabilities<Transposed, true>(s, weighted, stats, scale, row0, column0, small);
}
// As probabilities(), but keeps slopes in place of weighted probabilities; `slope` is the formula for small scores.
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
