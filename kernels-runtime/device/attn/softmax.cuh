// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Online softmax in base 2, and the final normalization.
#pragma once
#include "attn/copy.cuh"

namespace attn {

// How far a row's maximum may grow before sums and outputs are rescaled. Probabilities then reach 2^8, which is
// harmless in float32 sums and exact as powers of two in bf16 and fp16. After the first tiles hardly any row exceeds
// it, so neither the quad reduction nor the rescaling of the accumulator is executed.
constexpr float kSlack = 8;

ATTN_INLINE float quad_max(float x) {
  x = max(x, __shfl_xor_sync(~0u, x, 1));
  return max(x, __shfl_xor_sync(~0u, x, 2));
}
ATTN_INLINE float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// The sink of row r; of a pair, that of its head.
template <class F> ATTN_INLINE float sink_of(F f, int, int) { return f(); }
template <int H, class F> ATTN_INLINE float sink_of(F f, Pairs<H> first, int r) { return f(first.head + r % H); }

// Moves the sign of a negative scale into Q, so that online_softmax() may take the largest product for the largest
// score and finds masked scores at -inf. Ends with a barrier.
template <class T, int R, int C, int P> ATTN_INLINE void negate(const Smem<T, R, C, P> &Q) {
  const ThreadMap<Smem<T, R, C, P>> thread_map;
#pragma unroll 1
  for (int pass = 0; pass < thread_map.Passes; ++pass)
    if (thread_map.has(pass)) {
      uint4 &x = chunk_at(Q.at(thread_map.row + pass * thread_map.Step, thread_map.chunk * 8));
      x = {x.x ^ 0x80008000, x.y ^ 0x80008000, x.z ^ 0x80008000, x.w ^ 0x80008000};
    }
  __syncthreads();
}

// Probabilities of a row are relative to a reference 2^max, where `max` is close to the largest scaled score. One FMA a
// score is exact enough as long as half an ulp of `max` is a harmless factor, common to the whole row. From kExact on
// it is not: the row then has a raw reference, where `max` is the largest unscaled score, scores are compared with it
// before they are scaled, and the reference is exactly 2^(max * scale). Such a row is checked in every tile. A row
// without visible keys so far has -kLargest: any finite score then gives an infinity, which is detected if scale is not
// above 1.
constexpr float kExact = 1 << 24;
ATTN_INLINE bool is_large(float max) { return !(fabsf(max) < kExact); }

struct Reference {
  float max;
  bool raw;
  ATTN_INLINE bool empty() const { return max == (raw ? -infinity() : -kLargest); }
};
// The reference for a largest unscaled score.
ATTN_INLINE Reference reference(float score, float scale) {
  const float max = score * scale;
  if (score == -infinity())
    return scale > 1 ? Reference{score, true} : Reference{-kLargest, false};
  return is_large(max) ? Reference{score, true} : Reference{max, false};
}
// The reference of a row that also sees scores up to `now`.
ATTN_INLINE Reference raised(Reference before, float now, float scale) {
  if (before.raw)
    return reference(max(before.max, now), scale);
  return before.empty() | now * scale > before.max ? reference(now, scale) : before;
}
// The exponent that converts numbers from one reference to another.
ATTN_INLINE float step_to(Reference from, Reference to, float scale) {
  if (from.empty())
    return -infinity();
  if (from.raw)
    return to.raw ? (from.max - to.max) * scale : fmaf(from.max, scale, -to.max);
  return to.raw ? fmaf(-to.max, scale, from.max) : from.max - to.max;
}

// raw_rows() has a bit for each row with a raw reference.
template <int R, int W> ATTN_INLINE Reference reference_of(const SoftmaxState<R, W> &row, int i) {
  return {row.max[i], (row.raw_rows() >> i & 1) != 0};
}
template <int R, int W> ATTN_INLINE void set_reference(SoftmaxState<R, W> &row, int i, Reference to) {
  row.max[i] = to.max;
  row.set_raw_rows((row.raw_rows() & ~(1 << i)) | int(to.raw) << i);
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
// Does a score of the warp exceed its row's reference by more than the slack, or is a reference raw? For a row without
// visible keys, a score that overflows when scaled does not exceed -kLargest, hence the second test.
template <int R, int W>
ATTN_INLINE bool max_grows(const float (&top)[R / W / 8], const SoftmaxState<R, W> &row, float scale) {
  bool needs_rescale = row.raw_rows() != 0;
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    needs_rescale |= top[i] * scale > row.max[i] + kSlack;
    if (scale > 1)
      needs_rescale |= row.max[i] == -kLargest & top[i] != -infinity();
  }
  return __any_sync(~0u, needs_rescale);
}
// Moves the reference of row i to scores up to `now`, if `moves` or if it is raw. Returns the factor of numbers
// relative to the old reference.
template <int R, int W>
ATTN_INLINE float raise_reference(SoftmaxState<R, W> &row, int i, float now, bool moves, float scale) {
  const Reference before = reference_of(row, i), to = before.raw | moves ? raised(before, now, scale) : before;
  set_reference(row, i, to);
  return exp2(step_to(before, to, scale));
}
// Has a row a raw reference, or does it need one? `now`: the quad maxima.
template <int R, int W>
ATTN_INLINE bool is_raw(const SoftmaxState<R, W> &row, const float (&now)[R / W / 8], float scale) {
  bool raw = row.raw_rows() != 0;
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    raw |= is_large(now[i] * scale) & now[i] != -infinity();
  return __builtin_expect(__any_sync(~0u, raw), 0);
}
// raise_reference() for all rows, none of which is or becomes raw.
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
// raise_reference() for all rows, any of which may be raw. Scores of raw rows become relative to their reference, and
// `at`, to which their exponents are relative, becomes 0.
template <int R, int N, int W>
ATTN_INLINE void raise_raw_references(float (&rescale_factor)[R / W / 8], float (&at)[R / W / 8], Frag<R, N, W> &s,
                                      SoftmaxState<R, W> &row, const float (&now)[R / W / 8],
                                      const bool (&moves)[R / W / 8], float scale) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    rescale_factor[i] = raise_reference(row, i, now[i], moves[i] | is_large(now[i] * scale), scale);
    row.sum[i] *= rescale_factor[i];
    const Reference own = reference_of(row, i);
    at[i] = own.raw ? 0 : own.max;
    const float by = own.raw & own.max != -infinity() ? own.max : 0;
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
      s.v[i / 2][n][i % 2 * 2] -= by, s.v[i / 2][n][i % 2 * 2 + 1] -= by;
  }
}
// If the next tile does not look at maxima, rows without visible keys have to be marked where an infinity would not
// reveal them.
template <int R, int W> ATTN_INLINE void mark_rows_without_keys(SoftmaxState<R, W> &row, float scale) {
  if (scale > 1)
#pragma unroll
    for (int i = 0; i < R / W / 8; ++i)
      if (row.max[i] == -kLargest & !(row.raw_rows() >> i & 1))
        set_reference(row, i, {-infinity(), true});
}
template <int R, int W> ATTN_INLINE void quad_maxima(float (&top)[R / W / 8], const SoftmaxState<R, W> &) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    top[i] = quad_max(top[i]);
}

// Scores become probabilities relative to their rows' references, and are added to the sums.
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

// Needs scale > 0.
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
    const bool raw = is_raw(row, top, scale);
    float at[rows];
    if (raw)
      raise_raw_references(rescale_factor, at, s, row, top, moves, scale);
    else
      raise_references(rescale_factor, row, top, moves, scale);
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int n = 0; n < acc.Pieces; ++n)
        acc.v[i / 2][n][i % 2 * 2] *= rescale_factor[i], acc.v[i / 2][n][i % 2 * 2 + 1] *= rescale_factor[i];
    if (raw)
      return exponentiate(s, row, at, scale);
  }
  exponentiate(s, row, row.max, scale);
}

// ln(sum of exp(score)) of a row with visible keys, rounded once. As a float32, it holds nothing of the sum next to a
// largest score of 2^24 or more.
ATTN_INLINE float log_sum_exp(Reference of, float sum, float scale) {
  constexpr float ln2 = 0.693147182f, ln2_rest = -1.90465430e-9f;
  const float rest = log2(sum) * ln2;
  const float result = of.raw ? fmaf(of.max, scale * ln2, rest) : fmaf(of.max, ln2, fmaf(of.max, ln2_rest, rest));
  return result == result ? attn::min(attn::max(result, -kLargest), kLargest) : result;
}
// Result of a row: its LSE, or, for a split, its softmax state, to be combined. In a split without visible keys `max`
// is -inf; a raw reference is encoded by a negative sum.
struct PartialState {
  float *max, *sum;
};
ATTN_INLINE void store_row_state(float *lse, long long at, bool empty, Reference of, float sum, float scale) {
  lse[at] = empty ? -infinity() : log_sum_exp(of, sum, scale);
}
ATTN_INLINE void store_row_state(const PartialState &to, long long at, bool empty, Reference of, float sum, float) {
  to.max[at] = empty ? -infinity() : of.empty() ? 0 : of.max; // the sum is NaN then
  to.sum[at] = of.raw ? -sum : sum;
}

// Adds a sink, a key without a value whose score is in natural units, to the reference and the sum of a row. `own` is
// its share of the sum, to be added by one lane of the row; the result is the factor of all other shares. The sink's
// share may be up to 2^room times that of the row's maximum: a sink far above all scores, added first, would otherwise
// cost float16 probabilities their bits.
ATTN_INLINE float join_sink(Reference &of, float &own, float sink, float scale, float room) {
  constexpr float log2e = 1.442695041f, ln2 = 0.693147181f;
  const float score = sink * log2e;
  own = 0;
  if (sink == -infinity() || (!of.raw && !of.empty() && is_large(of.max)))
    return 1; // normalize() leaves such a row to recompute_rows()
  if (!is_large(score) & (!of.raw | of.empty())) {
    const Reference before = of;
    of = {before.raw ? score - room : max(before.max, score - room), false};
    own = exp2(score - of.max);
    return exp2(step_to(before, of, scale));
  }
  const float natural = scale * ln2, above = (sink - (of.empty() ? -infinity()
                                                      : of.raw   ? of.max * natural
                                                                 : of.max * ln2)) *
                                             log2e;
  if (!(above > 0)) {
    own = exp2(above);
    return 1;
  }
  of = {attn::min(attn::max(sink / natural, -kLargest), kLargest), true}, own = 1;
  return exp2(-above);
}

// The quad's lanes have shares of a row's sum, so one of them adds the sink.
template <int R, int C, int W, class First, class F>
ATTN_INLINE void add_sink(Frag<R, C, W> &acc, SoftmaxState<R, W> &row, float scale, First first, F f) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    float own;
    Reference of = reference_of(row, i);
    const float rescale_factor = join_sink(of, own, sink_of(f, first, row.row(i)), scale, 32);
    set_reference(row, i, of);
    row.sum[i] = fmaf(row.sum[i], rescale_factor, lane_index() % 4 == 0 ? own : 0);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      acc.v[i / 2][n][i % 2 * 2] *= rescale_factor, acc.v[i / 2][n][i % 2 * 2 + 1] *= rescale_factor;
  }
}

// acc / sum; a fully masked row has sum 0 and yields 0. Reduces the row sums over the quad, which store_lse() relies
// on. Repaired: a row that needs a raw reference and has none becomes NaN, for recompute_rows() to find.
template <bool Repaired = false, int R, int C, int W>
ATTN_INLINE void normalize(Frag<R, C, W> &acc, SoftmaxState<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    row.sum[i] = quad_sum(row.sum[i]);
    // A row at -kLargest with a sum has scores there; a row elsewhere without a sum has lost it to the rounding of the
    // reference.
    const bool left =
        Repaired && is_large(row.max[i]) && !reference_of(row, i).raw && (row.max[i] != -kLargest || row.sum[i] != 0);
    const float factor = left ? not_a_number() : row.sum[i] == 0 ? 0 : reciprocal(row.sum[i]);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      acc.v[i / 2][n][i % 2 * 2] *= factor, acc.v[i / 2][n][i % 2 * 2 + 1] *= factor;
  }
}

} // namespace attn
