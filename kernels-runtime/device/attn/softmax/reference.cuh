// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// References of rows, to which the probabilities of an online softmax are relative, and what follows from a row's
// reference and sum: its LSE, the softmax state of a split, and the contribution of a sink.
#pragma once
#include "attn/softmax/softmax_state.cuh"

namespace attn {

// Probabilities of a row are relative to a reference 2^max, where `max` is close to the largest scaled score: one FMA a
// score, whose rounding is exact enough while half an ulp of `max` is a harmless factor, common to the whole row. From
// kScoresExactBelow on it is not: the row then has an *unscaled* reference: `max` is the largest score before scaling,
// scores are compared with it before they are scaled, and the reference is exactly 2^(max * scale). Such a row is
// checked in every tile. A row without visible keys so far has -kLargest: any finite score then gives an infinity,
// which is detected if scale is not above 1.
constexpr float kScoresExactBelow = 1 << 24;
ATTN_INLINE bool is_large(float max) { return !(fabsf(max) < kScoresExactBelow); }

struct Reference {
  float max;
  bool unscaled;
  ATTN_INLINE bool empty() const { return max == (unscaled ? -infinity() : -kLargest); }
};
// The reference for a row whose largest score, before scaling, is `score`.
ATTN_INLINE Reference reference(float score, float scale) {
  const float max = score * scale;
  if (score == -infinity())
    return scale > 1 ? Reference{score, true} : Reference{-kLargest, false};
  return is_large(max) ? Reference{score, true} : Reference{max, false};
}
// The reference of a row that also has scores up to `now`.
ATTN_INLINE Reference raised(Reference before, float now, float scale) {
  if (before.unscaled)
    return reference(max(before.max, now), scale);
  return before.empty() | now * scale > before.max ? reference(now, scale) : before;
}
// The exponent of the factor that converts numbers relative to `from` into numbers relative to `to`.
ATTN_INLINE float conversion_exponent(Reference from, Reference to, float scale) {
  if (from.empty())
    return -infinity();
  if (from.unscaled)
    return to.unscaled ? (from.max - to.max) * scale : fmaf(from.max, scale, -to.max);
  return to.unscaled ? fmaf(-to.max, scale, from.max) : from.max - to.max;
}

// The reference of the lane's row i, whose bit in unscaled_rows() says whether it is unscaled.
template <int R, int W> ATTN_INLINE Reference reference_of(const SoftmaxState<R, W> &row, int i) {
  return {row.max[i], (row.unscaled_rows() >> i & 1) != 0};
}
template <int R, int W> ATTN_INLINE void set_reference(SoftmaxState<R, W> &row, int i, Reference to) {
  row.max[i] = to.max;
  row.set_unscaled_rows((row.unscaled_rows() & ~(1 << i)) | int(to.unscaled) << i);
}

// ln(sum of exp(score)) of a row with visible keys, rounded once. (Next to a largest score of 2^24 or more, a float32
// has no bits for the sum.)
ATTN_INLINE float log_sum_exp(Reference of, float sum, float scale) {
  constexpr float ln2 = 0.693147182f, ln2_rest = -1.90465430e-9f;
  const float rest = log2(sum) * ln2;
  const float result = of.unscaled ? fmaf(of.max, scale * ln2, rest) : fmaf(of.max, ln2, fmaf(of.max, ln2_rest, rest));
  return result == result ? attn::min(attn::max(result, -kLargest), kLargest) : result;
}
// Where the result of a row goes: its LSE, or, for a split, its softmax state, to be combined. In a split without
// visible keys `max` is -inf; a negative sum encodes an unscaled reference.
struct PartialState {
  float *max, *sum;
};
ATTN_INLINE void store_row_state(float *lse, long long at, bool empty, Reference of, float sum, float scale) {
  lse[at] = empty ? -infinity() : log_sum_exp(of, sum, scale);
}
ATTN_INLINE void store_row_state(const PartialState &to, long long at, bool empty, Reference of, float sum, float) {
  to.max[at] = empty        ? -infinity()
               : of.empty() ? 0
                            : of.max; // without a reference all its scores are NaN, and so is the sum
  to.sum[at] = of.unscaled ? -sum : sum;
}

// Adds a sink, a key without a value whose score is in natural units, to the reference of a row. `own` is its addend of
// the row's sum, to be added by one lane of the row; the result is the factor of all other addends. The sink may be up
// to 2^room times as large as the addend of the row's maximum: a sink far above all scores, added first, would
// otherwise cost float16 probabilities their bits.
ATTN_INLINE float join_sink(Reference &of, float &own, float sink, float scale, float room) {
  constexpr float log2e = 1.442695041f, ln2 = 0.693147181f;
  const float score = sink * log2e;
  own = 0;
  if (sink == -infinity() || (!of.unscaled && !of.empty() && is_large(of.max)))
    return 1; // normalize() leaves such a row to recompute_rows()
  if (!is_large(score) & (!of.unscaled | of.empty())) {
    const Reference before = of;
    of = {before.unscaled ? score - room : max(before.max, score - room), false};
    own = exp2(score - of.max);
    return exp2(conversion_exponent(before, of, scale));
  }
  const float natural = scale * ln2, above = (sink - (of.empty()    ? -infinity()
                                                      : of.unscaled ? of.max * natural
                                                                    : of.max * ln2)) *
                                             log2e;
  if (!(above > 0)) {
    own = exp2(above);
    return 1;
  }
  of = {attn::min(attn::max(sink / natural, -kLargest), kLargest), true}, own = 1;
  return exp2(-above);
}

// The sink of row r; of a pair, that of its head.
template <class F> ATTN_INLINE float sink_of(F f, int, int) { return f(); }
template <int H, class F> ATTN_INLINE float sink_of(F f, Pairs<H> first, int r) { return f(first.head + r % H); }

} // namespace attn
