// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a backward pass does between the products. Fragments of scores have queries in their rows and keys in their
// columns, or, Turned, the reverse.
#pragma once
#include "attn/modify.cuh"
#include "attn/softmax.cuh"

namespace attn {

// Of each query row: lse in base 2, and what is subtracted from gradients of its probabilities; in shared memory, first
// all of one kind.
template <int Count> struct Statistics {
  static constexpr int Rows = Count, Bytes = 8 * Count;
  static constexpr bool ReadByLanes = true;
  unsigned address;

  ATTN_INLINE explicit Statistics(int offset) : address(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  static ATTN_INLINE Statistics lying(unsigned address) {
    Statistics s(0);
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

// LSE in base 2, as a row's probabilities need it: +inf for a row that sees nothing, finite for others. LSE is a
// float32 and so is this: from kSureBelow on, exp(score - LSE) could come out above 1 + 2^-10, and where LSE is 1e9, at
// infinity. So it is raised there by what rounding may have taken, 2.25 * 2^-24 of itself (LSE's rounding, that of the
// product, and that of log2(e)): probabilities are at most 1 + 2^-10, and no loop has to bound them. Scores have to be
// those of the forward pass to the last bit, as the same products make them. An LSE merged from several passes has been
// rounded more often. From 2^23 on, where it holds no fractions, four more half ulps are for that. `exponent`: of a
// power of two that probabilities are multiplied by.
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

// 16 bytes a lane, and as many lanes for each row as it takes. A row that sees nothing, or that is none, has an lse of
// +inf: its probabilities are 0.
template <int Dim, int Rows, int Threads, class T>
ATTN_INLINE void prepare(float *to, long long pitch, const T *o, long long o_row, const T *grad, long long grad_row,
                         const float *lse, const float *grad_lse, int rows, int exponent = 0) {
  constexpr int Lanes = Dim > 128 ? 32 : Dim > 64 ? 16 : 8, Together = Threads / Lanes;
  static_assert(Dim <= 256 && Rows % Together == 0);
  if (rows <= 0)
    return;
  const int lane = threadIdx.x % Lanes;
#pragma unroll 2
  for (int r = threadIdx.x / Lanes; r < Rows; r += Together) {
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

// Of sums that are added to in order: nobody has yet.
template <int Count> ATTN_INLINE void clear_turns(int *turns, int rows) {
  if (threadIdx.x < Count && int(threadIdx.x) * 64 < rows)
    turns[threadIdx.x] = 0;
}

template <int N> ATTN_INLINE void copy_statistics(const Statistics<N> &to, const float *from, long long pitch) {
  for (int i = threadIdx.x; i < N / 2; i += blockDim.x) {
    const float *const x = i < N / 4 ? from + i * 4 : from + pitch + (i - N / 4) * 4;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to.address + i * 16), "l"(x) : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// What `first(i)` of the statistics is for each element: one number a row, or two a piece of columns.
template <bool Turned, int R, int N, int W, class Address, class F>
ATTN_INLINE void with_statistics(Frag<R, N, W> &s, Address address, F f) {
  if (Turned) {
    const unsigned first =
        here(address(s.col(0))); // else all sums with offsets are kept in registers from tile to tile
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

// `scale` is positive, so hidden pairs, which are -inf, become 0.
template <bool Turned, int R, int N, int W, int K>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const Statistics<K> &stats, float scale) {
  with_statistics<Turned>(
      s, [&](int i) { return stats.lse(i); },
      [&](int m, int n, int i, float lse) { s.v[m][n][i] = exp2(fmaf(s.v[m][n][i], scale, -lse)); });
}

// What f makes of element (m, n, i), which is `score`.
template <int R, int N, int W, class First, class F>
ATTN_INLINE Changed changed_at(const Frag<R, N, W> &s, float score, int m, int n, int i, First row0, int column0, F f) {
  const int base = column0 + s.col(0);
  return apply(f, score, row0, s.row(2 * m + i / 2), base + n * 8 + i % 2, base, float(n * 8 + i % 2));
}
// The same of modified scores; `weighted` gets probability times derivative.
template <bool Turned, bool Shown = false, int R, int N, int W, int K, class First, class F>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, Frag<R, N, W> &weighted, const Statistics<K> &stats, float scale,
                               First row0, int column0, F f) {
  with_statistics<Turned>(
      s, [&](int i) { return stats.lse(i); },
      [&](int m, int n, int i, float lse) {
        const float score = s.v[m][n][i];
        const Changed changed = changed_at(s, score, m, n, i, row0, column0, f);
        s.v[m][n][i] = !Shown && score == -infinity() ? 0 : exp2(fmaf(changed.score, scale, -lse));
        weighted.v[m][n][i] =
            !Shown && s.v[m][n][i] == 0 ? 0 : s.v[m][n][i] * changed.slope; // which need not be a number there
      });
}
// Of what products hold: its pair i of 16 columns k, and the pair with element (m, n, i). Set in order, and asked for
// in order.
template <class T, int R, int N, int W>
ATTN_INLINE void set_pair(Held<T, R, N, W> &held, int m, int k, int i, unsigned pair) {
  held.v[m][k][i] = pair;
}
template <class T, int R, int N, int W>
ATTN_INLINE unsigned pair_of(const Held<T, R, N, W> &held, int m, int n, int i) {
  return held.v[m][n / 2][n % 2 * 2 + i / 2];
}

// What is kept of a pair's slope: probability times slope,
struct Weighted {
  static ATTN_INLINE float number(float p, float slope) { return p * slope; }
  template <class T> static ATTN_INLINE unsigned pair(float low, float high) { return pack<T>(low, high); }
};
// the slope itself,
struct Itself : Weighted {
  static ATTN_INLINE float number(float, float slope) { return slope; }
};
// or this, of what is given in its stead.
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

// The same with `weighted` as products hold it: there are no registers for more. Shown: no pair is hidden, and all
// slopes are numbers.
template <bool Turned, bool Shown = false, template <class, int, int, int> class Place, class T, int R, int N, int W,
          int K, class First, class F, class Kept = Weighted>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, Place<T, R, N, W> &weighted, const Statistics<K> &stats, float scale,
                               First row0, int column0, F f, Kept kept = Kept()) {
  float before = 0;
  with_statistics<Turned>(
      s, [&](int i) { return stats.lse(i); },
      [&](int m, int n, int i, float lse) {
        const float score = s.v[m][n][i];
        const Changed changed = changed_at(s, score, m, n, i, row0, column0, f);
        // By 1 nothing is multiplied, so that the compiler may join the difference with the product that a small score
        // is. (Of 128 queries it makes other code by it, which is slower.)
        const bool joins = Shown && N <= 64 && scale == 1;
        const float p = exp2(!Shown && score == -infinity() ? score
                             : joins                        ? changed.score - lse
                                                            : fmaf(changed.score, scale, -lse));
        const float now = !Shown && p == 0 ? 0 : kept.number(p, changed.slope);
        s.v[m][n][i] = p;
        if (i % 2)
          set_pair(weighted, m, n / 2, n % 2 * 2 + i / 2, kept.template pair<T>(before, now));
        before = now;
      });
}
// The same with a formula for scores below `within`, which is right where all of the warp's are; a hidden one is not.
template <bool Turned, class Place, int R, int N, int W, int K, class First, class Small, class F>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, Place &weighted, const Statistics<K> &stats, float scale, First row0,
                               int column0, float within, Small small, F f) {
  if (__any_sync(~0u, largest_of(s) >= within))
    probabilities<Turned>(s, weighted, stats, scale, row0, column0, f);
  else
    probabilities<Turned, true>(s, weighted, stats, scale, row0, column0, small);
}
// With slopes in place of weights; `slope`: of small scores.
template <bool Turned, class Place, int R, int N, int W, int K, class First, class F>
ATTN_INLINE void probabilities_and_slopes(Frag<R, N, W> &s, Place &slopes, const Statistics<K> &stats, float scale,
                                          First row0, int column0, F f) {
  probabilities<Turned>(s, slopes, stats, scale, row0, column0, f, Itself());
}
template <bool Turned, class Place, int R, int N, int W, int K, class First, class Slope, class Small, class F>
ATTN_INLINE void probabilities_and_slopes(Frag<R, N, W> &s, Place &slopes, const Statistics<K> &stats, float scale,
                                          First row0, int column0, float within, Slope slope, Small small, F f) {
  if (__any_sync(~0u, largest_of(s) >= within))
    probabilities_and_slopes<Turned>(s, slopes, stats, scale, row0, column0, f);
  else
    probabilities<Turned, true>(s, slopes, stats, scale, row0, column0, small, slope);
}
template <bool Turned, int R, int N, int W, int K, class First, class F>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const Statistics<K> &stats, float scale, First row0, int column0,
                               F f) {
  Frag<R, N, W> unused;
  probabilities<Turned>(s, unused, stats, scale, row0, column0, f);
}

// x becomes p * (x - delta), or p * (x * by - delta), `by` being what makes up for an exponent of probabilities.
template <bool Turned, int R, int N, int W, int K>
ATTN_INLINE void grad_scores(Frag<R, N, W> &x, const Frag<R, N, W> &p, const Statistics<K> &stats, float by = 1) {
  with_statistics<Turned>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) { x.v[m][n][i] = p.v[m][n][i] * fmaf(x.v[m][n][i], by, -delta); });
}

// The same with probabilities as a product holds them: rounded, two in a register.
template <bool Turned, template <class, int, int, int> class Place, class T, int R, int N, int W, int K>
ATTN_INLINE void grad_scores(Frag<R, N, W> &x, Place<T, R, N, W> &p, const Statistics<K> &stats, float by = 1) {
  with_statistics<Turned>(
      x, [&](int i) { return stats.delta(i); },
      [&](int m, int n, int i, float delta) {
        const unsigned pair = pair_of(p, m, n, i);
        x.v[m][n][i] = (i % 2 ? high_half<T>(pair) : low_half<T>(pair)) * fmaf(x.v[m][n][i], by, -delta);
      });
}

// The same with slopes of scores, held as probabilities are.
template <bool Turned, template <class, int, int, int> class Place, class T, class Slopes, int R, int N, int W, int K>
ATTN_INLINE void grad_scores(Frag<R, N, W> &x, Place<T, R, N, W> &p, Slopes &slopes, const Statistics<K> &stats) {
  unsigned pair = 0;
  with_statistics<Turned>(
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
