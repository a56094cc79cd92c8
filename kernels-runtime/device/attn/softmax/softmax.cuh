// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Online softmax in base 2, and the final normalization.
#pragma once
#include "attn/softmax/reference.cuh"

namespace attn {

// Reductions over the four lanes that share a row.
ATTN_INLINE float quad_max(float x) {
  x = max(x, __shfl_xor_sync(~0u, x, 1));
  return max(x, __shfl_xor_sync(~0u, x, 2));
}
ATTN_INLINE float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// The lane's maximum of each row.
template <int R, int N, int W> ATTN_INLINE void lane_max(float (&top)[R / W / 8], const Frag<R, N, W> &s) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    top[i] = -infinity();
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
      top[i] = max(top[i], max(s.v[i / 2][n][i % 2 * 2], s.v[i / 2][n][i % 2 * 2 + 1]));
  }
}
// Does a score of the warp exceed its row's reference by more than the threshold, or is a reference unscaled? For a row
// without visible keys, a score that overflows when scaled does not exceed -kLargest, hence the second test.
template <int R, int W>
ATTN_INLINE bool max_grows(const float (&top)[R / W / 8], const SoftmaxState<R, W> &row, float scale) {
  bool needs_rescale = row.unscaled_rows() != 0;
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    needs_rescale |= top[i] * scale > row.max[i] + kRescaleThresholdExponent;
    if (scale > 1)
      needs_rescale |= row.max[i] == -kLargest & top[i] != -infinity();
  }
  return __any_sync(~0u, needs_rescale);
}
// Moves the reference of row i to scores up to `now`, if `moves` or if it is unscaled. Returns the factor of numbers
// relative to the old reference.
template <int R, int W>
ATTN_INLINE float raise_reference(SoftmaxState<R, W> &row, int i, float now, bool moves, float scale) {
  const Reference before = reference_of(row, i), to = before.unscaled | moves ? raised(before, now, scale) : before;
  set_reference(row, i, to);
  return exp2(conversion_exponent(before, to, scale));
}
// Does a row of the warp have an unscaled reference, or need one? `now`: the quad maxima.
template <int R, int W>
ATTN_INLINE bool is_unscaled(const SoftmaxState<R, W> &row, const float (&now)[R / W / 8], float scale) {
  bool unscaled = row.unscaled_rows() != 0;
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    unscaled |= is_large(now[i] * scale) & now[i] != -infinity();
  return __builtin_expect(__any_sync(~0u, unscaled), 0);
}
// raise_reference() for all rows, none of which is or becomes unscaled.
template <int R, int W>
ATTN_INLINE void raise_references(float (&rescale_factor)[R / W / 8], SoftmaxState<R, W> &row,
                                  const float (&now)[R / W / 8], const bool (&moves)[R / W / 8], float scale) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    const float before = row.max[i];
    row.max[i] = moves[i] ? max(before, now[i] * scale) : before;
    rescale_factor[i] = exp2(before - row.max[i]);
    row.sum[i] *= rescale_factor[i];
  }
}
// raise_reference() for all rows, any of which may be unscaled. Scores of unscaled rows become relative to their
// reference, so `at`, which exponentiate() subtracts, becomes 0 for them.
template <int R, int N, int W>
ATTN_INLINE void raise_unscaled_references(float (&rescale_factor)[R / W / 8], float (&at)[R / W / 8], Frag<R, N, W> &s,
                                           SoftmaxState<R, W> &row, const float (&now)[R / W / 8],
                                           const bool (&moves)[R / W / 8], float scale) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    rescale_factor[i] = raise_reference(row, i, now[i], moves[i] | is_large(now[i] * scale), scale);
    row.sum[i] *= rescale_factor[i];
    const Reference own = reference_of(row, i);
    at[i] = own.unscaled ? 0 : own.max;
    const float by = own.unscaled & own.max != -infinity() ? own.max : 0;
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
      s.v[i / 2][n][i % 2 * 2] -= by, s.v[i / 2][n][i % 2 * 2 + 1] -= by;
  }
}
// Marks rows without visible keys for a next tile that does not compute maxima, where an infinity would not reveal
// them.
template <int R, int W> ATTN_INLINE void mark_rows_without_keys(SoftmaxState<R, W> &row, float scale) {
  if (scale > 1)
#pragma unroll
    for (int i = 0; i < R / W / 8; ++i)
      if (row.max[i] == -kLargest & !(row.unscaled_rows() >> i & 1))
        set_reference(row, i, {-infinity(), true});
}
template <int R, int W> ATTN_INLINE void quad_maxima(float (&top)[R / W / 8], const SoftmaxState<R, W> &) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    top[i] = quad_max(top[i]);
}

// Scores become probabilities relative to their rows' references `at`, and are added to the sums.
template <int R, int N, int W>
ATTN_INLINE void exponentiate(Frag<R, N, W> &s, SoftmaxState<R, W> &row, const float (&at)[R / W / 8], float scale) {
#pragma unroll
  for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
    for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float &x = s.v[m][n][i];
        x = exp2(fmaf(x, scale, -at[2 * m + i / 2]));
        row.sum[2 * m + i / 2] += x;
      }
}

// Needs a positive scale.
template <int R, int N, int C, int W>
ATTN_INLINE void online_softmax(Frag<R, N, W> &s, SoftmaxState<R, W> &row, Frag<R, C, W> &acc, float scale) {
  constexpr int rows = R / W / 8;
  float top[rows];
  lane_max(top, s);
  if (max_grows(top, row, scale)) {
    float rescale_factor[rows];
    bool moves[rows];
#pragma unroll
    for (int i = 0; i < rows; ++i)
      moves[i] = true;
    quad_maxima(top, row);
    const bool unscaled = is_unscaled(row, top, scale);
    float at[rows];
    if (unscaled)
      raise_unscaled_references(rescale_factor, at, s, row, top, moves, scale);
    else
      raise_references(rescale_factor, row, top, moves, scale);
#pragma unroll
    for (int i = 0; i < rows; ++i)
      scale_row(acc, i, rescale_factor[i]);
    if (unscaled)
      return exponentiate(s, row, at, scale);
  }
  exponentiate(s, row, row.max, scale);
}

// The four lanes of a quad have partial sums of a row, so one of them adds the sink.
template <int R, int C, int W, class First, class F>
ATTN_INLINE void add_sink(Frag<R, C, W> &acc, SoftmaxState<R, W> &row, float scale, First first, F f) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    float own;
    Reference of = reference_of(row, i);
    const float rescale_factor = join_sink(of, own, sink_of(f, first, row.row(i)), scale, 32);
    set_reference(row, i, of);
    row.sum[i] = fmaf(row.sum[i], rescale_factor, lane_index() % 4 == 0 ? own : 0);
    scale_row(acc, i, rescale_factor);
  }
}

// acc / sum; a row that sees no key has sum 0 and yields 0. Reduces the row sums over the quad, which store_lse()
// relies on. RecomputesRows: a row that needs an unscaled reference and has none becomes NaN, so that recompute_rows()
// finds it.
template <bool RecomputesRows = false, int R, int C, int W>
ATTN_INLINE void normalize(Frag<R, C, W> &acc, SoftmaxState<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    row.sum[i] = quad_sum(row.sum[i]);
    // Such a row is at -kLargest with a sum, from scores there, or elsewhere, even without a sum, which the rounding of
    // the reference has then made 0.
    const bool needs_unscaled = RecomputesRows && is_large(row.max[i]) && !reference_of(row, i).unscaled &&
                                (row.max[i] != -kLargest || row.sum[i] != 0);
    const float factor = needs_unscaled ? not_a_number() : row.sum[i] == 0 ? 0 : reciprocal(row.sum[i]);
    scale_row(acc, i, factor);
  }
}

} // namespace attn
