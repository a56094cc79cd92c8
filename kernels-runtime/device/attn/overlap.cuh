// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The online softmax in two halves: what concerns the scores, and what concerns the accumulator, into which a product
// runs meanwhile.
#pragma once
#include "attn/modify.cuh"
#include "attn/softmax.cuh"
#include "attn/wgmma.cuh"

namespace attn {

// Raises the running maxima, turns scores into probabilities and adds them to the sums. What that means for the
// accumulator stays with the rows until rescale(). Needs scale > 0. Repaired: no row gets a raw reference;
// normalize<true>() finds those that need one, for repair().
template <bool Repaired = false, int R, int N, int W>
ATTN_INLINE void softmax(Frag<R, N, W> &s, Rows<R, W> &row, float scale) {
  constexpr int rows = R / W / 8;
  float top[rows], at[rows];
#pragma unroll
  for (int i = 0; i < rows; ++i)
    at[i] = row.max[i];
  largest(top, s);
  row.grew = grows(top, row, scale);
  if (row.grew) {
    // A row moves only if it grew itself: its bits depend on no other row of the warp, such as one behind its
    // sequence's end.
    bool moves[rows];
    quad_maxima(top, row);
#pragma unroll
    for (int i = 0; i < rows; ++i)
      moves[i] = top[i] * scale > row.max[i] + kSlack;
    if constexpr (Repaired) {
      raise_all(row.shrink, row, top, moves, scale);
      return exponentiate(s, row, row.max, scale);
    }
    if (is_raw(row, top, scale))
      raise_raw(row.shrink, at, s, row, top, moves, scale);
    else {
      raise_all(row.shrink, row, top, moves, scale);
#pragma unroll
      for (int i = 0; i < rows; ++i)
        at[i] = row.max[i];
    }
  }
  exponentiate(s, row, at, scale);
  if (!Repaired)
    mark_unseen(row, scale);
}

// The other half: the accumulator follows the maxima.
template <int R, int C, int W> ATTN_INLINE void rescale(Frag<R, C, W> &acc, const Rows<R, W> &row) {
  if (row.grew) {
#pragma unroll
    for (int i = 0; i < 2 * acc.Blocks; ++i)
#pragma unroll
      for (int n = 0; n < acc.Pieces; ++n)
        acc.v[i / 2][n][i % 2 * 2] *= row.shrink[i], acc.v[i / 2][n][i % 2 * 2 + 1] *= row.shrink[i];
  }
}

// Probabilities as the left operand of the product with V. NOTE: not before the product that reads the ones before is
// over, and so not before `s` is settled.
template <class T, int R, int N, int W> ATTN_INLINE void round(Held<T, R, N, W> &p, Frag<R, N, W> &s) {
  settle(s);
#pragma unroll
  for (int k = 0; k < N; k += 16)
    pack_depth<T>(p.v[0][k / 16], s, 0, k);
}

// The exponent that belongs to a score, in base 2, relative to a reference; and whether it is not exact enough for a
// reference that is not raw.
ATTN_INLINE float exponent(float score, float scale, float at) { return fmaf(score, scale, -at); }
ATTN_INLINE float exponent(Linear score, float scale, float at) {
  return fmaf(score.a, score.b * scale, score.c * scale - at);
}
ATTN_INLINE bool is_inexact(float, float) { return false; }
ATTN_INLINE bool is_inexact(Linear, float at) { return fabsf(at) >= 8192 & at != -kLargest; }

// The probabilities of f(score, row, key, base, ahead), relative to references, rounded; and the lane's share of their
// sums.
template <class T, int R, int N, int W, class F>
ATTN_INLINE void exponentiate(Held<T, R, N, W> &p, float (&sum)[2], const Frag<R, N, W> &s, const float (&at)[2],
                              float scale, int q0, int k0, F f) {
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

// Scores become rounded probabilities and join the sums, as softmax() and round() do it, but the maxima are looked at
// afterwards: hardly any tile raises one, and whether it does is seen in the sums. Then all is done once more, from the
// scores, which are still there. So no exponential waits for a maximum, and most tiles need none. The scores are those
// that f makes; `small` makes the same where fits() says so afterwards.
// NOTE: not before the product that reads the probabilities before is over. Needs scale > 0.
template <bool Repaired, class T, int R, int N, int W, class Fits, class Small, class F>
ATTN_INLINE void weigh_with(Held<T, R, N, W> &p, Frag<R, N, W> &s, Rows<R, W> &row, float scale, int q0, int k0,
                            Fits fits, Small small, F f) {
  settle(s);
  using Score = decltype(small(0.f, 0, 0, 0, 0.f));
  float sum[2];
  exponentiate(p, sum, s, row.max, scale, q0, k0, small);
  // Negated: sums relative to a raw reference may be NaN here.
  const bool much = Repaired ? max(sum[0], sum[1]) > kMuch : !(max(sum[0], sum[1]) <= row.much);
  row.grew = __any_sync(~0u, much | !fits() | is_inexact(Score(), row.max[0]) | is_inexact(Score(), row.max[1]));
  if (row.grew) {
    modify(s, q0, k0, f);
    float top[2];
    largest(top, s);
    quad_maxima(top, row);
    // A row moves only if its own sum asks for it: its bits depend on no other row of the warp, such as one behind its
    // sequence's end.
    const bool moves[2] = {quad_max(sum[0]) > kMuch, quad_max(sum[1]) > kMuch};
    if constexpr (Repaired) {
      raise_all(row.shrink, row, top, moves, scale);
      exponentiate(p, sum, s, row.max, scale, q0, k0, Unmodified());
    } else {
      if (is_raw(row, top, scale)) {
        float at[2];
        raise_raw(row.shrink, at, s, row, top, moves, scale);
        exponentiate(p, sum, s, at, scale, q0, k0, Unmodified());
      } else {
        raise_all(row.shrink, row, top, moves, scale);
        exponentiate(p, sum, s, row.max, scale, q0, k0, Unmodified());
      }
      mark_unseen(row, scale);
    }
  }
  row.sum[0] += sum[0], row.sum[1] += sum[1];
}
template <bool Repaired = false, class T, int R, int N, int W, class F>
ATTN_INLINE void weigh(Held<T, R, N, W> &p, Frag<R, N, W> &s, Rows<R, W> &row, float scale, int q0, int k0, F f) {
  weigh_with<Repaired>(p, s, row, scale, q0, k0, [] { return true; }, f, f);
}
template <bool Repaired = false, class T, int R, int N, int W>
ATTN_INLINE void weigh(Held<T, R, N, W> &p, Frag<R, N, W> &s, Rows<R, W> &row, float scale) {
  weigh<Repaired>(p, s, row, scale, 0, 0, Unmodified());
}
// Whether all scores are small is seen in the signs of score^2 - within^2, which `small` computes too if it is wise.
template <bool Repaired = false, class T, int R, int N, int W, class Small, class F>
ATTN_INLINE void weigh(Held<T, R, N, W> &p, Frag<R, N, W> &s, Rows<R, W> &row, float scale, int q0, int k0,
                       float within, Small small, F f) {
  int signs = -1;
  const auto watched = [&](float score, int q, int k, int base, float ahead) {
    signs &= __float_as_int(fmaf(score, score, -(within * within)));
    return small(score, q, k, base, ahead);
  };
  weigh_with<Repaired>(p, s, row, scale, q0, k0, [&] { return signs < 0; }, watched, f);
}

// `small` makes this of the largest score that it is right for, in base 2, more of those beyond, and of negative scores
// the negative. So where maxima are at least kMuchPower below it, one score beyond shows in the sums; and where they
// are not far below 0, one beyond on the other side counts for nothing (of 2^20 keys whose weights are wrong by a
// hundredth, at 2^-26 each: 2e-4).
struct SmallTo {
  float most;
};
template <bool Repaired = false, class T, int R, int N, int W, class Small, class F>
ATTN_INLINE void weigh(Held<T, R, N, W> &p, Frag<R, N, W> &s, Rows<R, W> &row, float scale, int q0, int k0, SmallTo to,
                       Small small, F f) {
  const float lowest = min(row.max[0], row.max[1]), highest = max(row.max[0], row.max[1]);
  weigh_with<Repaired>(
      p, s, row, scale, q0, k0, [=] { return (lowest >= -6) & (highest <= to.most - kMuchPower); }, small, f);
}

} // namespace attn
