// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The online softmax in two steps, so that products can overlap with it: one step on the scores, and one on the
// accumulator, which a product still writes during the first.
#pragma once
#include "attn/mma/warpgroup_mma.cuh"
#include "attn/softmax/modify.cuh"
#include "attn/softmax/softmax.cuh"

namespace attn {

// The first step: updates the running maxima, turns scores into probabilities and adds them to the sums. Needs a
// positive scale. RecomputesRows: no row gets an unscaled reference, since recompute_rows() follows and
// normalize<true>() finds rows that need one.
template <bool RecomputesRows = false, int R, int N, int W>
ATTN_INLINE void softmax(Frag<R, N, W> &s, SoftmaxState<R, W> &row, float scale) {
  constexpr int rows = R / W / 8;
  float top[rows], at[rows];
#pragma unroll
  for (int i = 0; i < rows; ++i)
    at[i] = row.max[i];
  lane_max(top, s);
  row.needs_rescale = max_grows(top, row, scale);
  if (row.needs_rescale) {
    // A row's reference moves only if the row itself needs it. So the bits of a row depend on no other row of the warp,
    // such as one past the sequence's end.
    bool moves[rows];
    quad_maxima(top, row);
#pragma unroll
    for (int i = 0; i < rows; ++i)
      moves[i] = top[i] * scale > row.max[i] + kRescaleThresholdExponent;
    if constexpr (RecomputesRows) {
      raise_references(row.rescale_factor, row, top, moves, scale);
      return exponentiate(s, row, row.max, scale);
    }
    if (is_unscaled(row, top, scale))
      raise_unscaled_references(row.rescale_factor, at, s, row, top, moves, scale);
    else {
      raise_references(row.rescale_factor, row, top, moves, scale);
#pragma unroll
      for (int i = 0; i < rows; ++i)
        at[i] = row.max[i];
    }
  }
  exponentiate(s, row, at, scale);
  if (!RecomputesRows)
    mark_rows_without_keys(row, scale);
}

// The second step: rescales the accumulator.
template <int R, int C, int W> ATTN_INLINE void rescale(Frag<R, C, W> &acc, const SoftmaxState<R, W> &row) {
  if (row.needs_rescale) {
#pragma unroll
    for (int i = 0; i < 2 * acc.Blocks; ++i)
      scale_row(acc, i, row.rescale_factor[i]);
  }
}

// Converts probabilities to the left operand of the product with V. NOTE: only after the product that reads the
// previous operand is complete. The fence keeps the conversion behind the wait for it.
template <class T, int R, int N, int W> ATTN_INLINE void convert(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s) {
  warpgroup_fence_operand(s);
#pragma unroll
  for (int k = 0; k < N; k += 16)
    pack_depth<T>(p.v[0][k / 16], s, 0, k);
}
// Makes the conversion complete before what follows begins. Otherwise the next products begin earlier and take
// registers of their own.
template <class T, int R, int N, int W>
ATTN_INLINE void convert_at_once(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s) {
  convert(p, s);
#pragma unroll
  for (int k = 0; k < N / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("" : "+r"(p.v[0][k][i])::"memory");
}

// The exponent of a score relative to a reference that is not unscaled, in base 2; and whether it would be too inexact.
ATTN_INLINE float exponent(float score, float scale, float at) { return fmaf(score, scale, -at); }
ATTN_INLINE float exponent(LinearScore score, float scale, float at) {
  return fmaf(score.a, score.b * scale, score.c * scale - at);
}
ATTN_INLINE bool is_inexact(float, float) { return false; }
ATTN_INLINE bool is_inexact(LinearScore, float at) { return fabsf(at) >= 8192 & at != -kLargest; }

// Probabilities of the scores f(score, row, key, base, column_offset), relative to the references and converted; and
// the lane's sums of them.
template <class T, int R, int N, int W, class F>
ATTN_INLINE void exponentiate(RegisterOperand<T, R, N, W> &p, float (&sum)[2], const Frag<R, N, W> &s,
                              const float (&at)[2], float scale, int q0, int k0, F f) {
  const int base = k0 + s.col(0);
  sum[0] = sum[1] = 0;
#pragma unroll
  for (int k = 0; k < N / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int n = 2 * k + i / 2, half = i % 2, q = q0 + s.row(half);
      float pair[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const auto score = f(s.v[0][n][2 * half + c], q, base + n * 8 + c, base, float(n * 8 + c));
        pair[c] = exp2(exponent(score, scale, at[half]));
        sum[half] += pair[c];
      }
      p.v[0][k][i] = pack<T>(pair[0], pair[1]);
    }
}

// Combines softmax() and convert(), and computes maxima only if they are needed: hardly any tile raises a maximum, and
// whether it does shows in the sums. If so, the step is repeated from the scores, which are still in registers. So no
// exponential waits for a maximum, and most tiles compute none. Scores are modified by f; `small` is a cheaper formula,
// which fits() confirms afterwards. NOTE: only after the product that reads the previous operand is complete. Needs a
// positive scale.
template <bool RecomputesRows, class T, int R, int N, int W, class Fits, class Small, class F>
ATTN_INLINE void softmax_convert_with(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s, SoftmaxState<R, W> &row,
                                      float scale, int q0, int k0, Fits fits, Small small, F f) {
  warpgroup_fence_operand(s);
  using Score = decltype(small(0.f, 0, 0, 0, 0.f));
  float sum[2];
  exponentiate(p, sum, s, row.max, scale, q0, k0, small);
  // Negated: sums relative to an unscaled reference may be NaN here.
  const bool exceeds =
      RecomputesRows ? max(sum[0], sum[1]) > kRescaleThreshold : !(max(sum[0], sum[1]) <= row.rescale_threshold);
  row.needs_rescale =
      __any_sync(~0u, exceeds | !fits() | is_inexact(Score(), row.max[0]) | is_inexact(Score(), row.max[1]));
  if (row.needs_rescale) {
    modify(s, q0, k0, f);
    float top[2];
    lane_max(top, s);
    quad_maxima(top, row);
    // As in softmax(), a row's reference moves only if its own sum requires it.
    const bool moves[2] = {quad_max(sum[0]) > kRescaleThreshold, quad_max(sum[1]) > kRescaleThreshold};
    if constexpr (RecomputesRows) {
      raise_references(row.rescale_factor, row, top, moves, scale);
      exponentiate(p, sum, s, row.max, scale, q0, k0, Unmodified());
    } else {
      if (is_unscaled(row, top, scale)) {
        float at[2];
        raise_unscaled_references(row.rescale_factor, at, s, row, top, moves, scale);
        exponentiate(p, sum, s, at, scale, q0, k0, Unmodified());
      } else {
        raise_references(row.rescale_factor, row, top, moves, scale);
        exponentiate(p, sum, s, row.max, scale, q0, k0, Unmodified());
      }
      mark_rows_without_keys(row, scale);
    }
  }
  row.sum[0] += sum[0], row.sum[1] += sum[1];
}
template <bool RecomputesRows = false, class T, int R, int N, int W, class F>
ATTN_INLINE void softmax_convert(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s, SoftmaxState<R, W> &row, float scale,
                                 int q0, int k0, F f) {
  softmax_convert_with<RecomputesRows>(p, s, row, scale, q0, k0, [] { return true; }, f, f);
}
template <bool RecomputesRows = false, class T, int R, int N, int W>
ATTN_INLINE void softmax_convert(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s, SoftmaxState<R, W> &row,
                                 float scale) {
  softmax_convert<RecomputesRows>(p, s, row, scale, 0, 0, Unmodified());
}
// Whether `small` fits all scores follows from the signs of score^2 - within^2; it typically computes score^2, too.
template <bool RecomputesRows = false, class T, int R, int N, int W, class Small, class F>
ATTN_INLINE void softmax_convert(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s, SoftmaxState<R, W> &row, float scale,
                                 int q0, int k0, float within, Small small, F f) {
  int signs = -1;
  const auto checked = [&](float score, int q, int k, int base, float column_offset) {
    signs &= __float_as_int(fmaf(score, score, -(within * within)));
    return small(score, q, k, base, column_offset);
  };
  softmax_convert_with<RecomputesRows>(p, s, row, scale, q0, k0, [&] { return signs < 0; }, checked, f);
}

// `value` is what `small` yields at the largest score that it is valid for, in base 2. `small` is odd, and monotone
// beyond that score. If maxima are at least kRescaleThresholdExponent below the value, a score above the valid range
// shows in the sums. If maxima are not far below 0, a score below the range has no weight: 2^20 keys whose weights are
// wrong by 1 %, at 2^-26 each, amount to 2e-4.
struct SmallBound {
  float value;
};
template <bool RecomputesRows = false, class T, int R, int N, int W, class Small, class F>
ATTN_INLINE void softmax_convert(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s, SoftmaxState<R, W> &row, float scale,
                                 int q0, int k0, SmallBound to, Small small, F f) {
  const float lowest = min(row.max[0], row.max[1]), highest = max(row.max[0], row.max[1]);
  softmax_convert_with<RecomputesRows>(
      p, s, row, scale, q0, k0, [=] { return (lowest >= -6) & (highest <= to.value - kRescaleThresholdExponent); },
      small, f);
}

} // namespace attn
