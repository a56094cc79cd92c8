// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Online softmax in base 2, and the division at its end.
#pragma once
#include "attn/copy.cuh"

namespace attn {

// How far a row's maximum may grow before sums and outputs are rescaled. Probabilities then reach 2^8, harmless in fp32
// sums and exact as powers of two in bf16 and fp16, and after the first tiles hardly any row triggers it: neither the
// quad's exchange nor the multiplication of the whole accumulator is paid for.
constexpr float kSlack = 8;

ATTN_INLINE float quad_max(float x) {
  x = max(x, __shfl_xor_sync(~0u, x, 1));
  return max(x, __shfl_xor_sync(~0u, x, 2));
}
ATTN_INLINE float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// What f says of the head of row r, which of pairs it gets.
template <class F> ATTN_INLINE float sink_of(F f, int, int) { return f(); }
template <int H, class F> ATTN_INLINE float sink_of(F f, Pairs<H> first, int r) { return f(first.head + r % H); }

// A negative scale moves its sign into Q, so that softmax_step() may take the largest product for the largest score and
// find a masked score at -inf. Ends with a barrier of the block.
template <class T, int R, int C, int P> ATTN_INLINE void negate(const Smem<T, R, C, P> &Q) {
  const Walk<Smem<T, R, C, P>> walk;
#pragma unroll 1
  for (int pass = 0; pass < walk.Passes; ++pass)
    if (walk.has(pass)) {
      uint4 &x = chunk_at(Q.at(walk.row + pass * walk.Step, walk.chunk * 8));
      x = {x.x ^ 0x80008000, x.y ^ 0x80008000, x.z ^ 0x80008000, x.w ^ 0x80008000};
    }
  __syncthreads();
}

// Probabilities of a row are relative to its reference, a power of two: 2^max, with `max` near its largest score times
// `scale`, rounded. One FMA a score is exact enough as long as half an ulp of `max` is a harmless factor, common to the
// whole row. From kExact on it is not: then `max` is the largest raw score itself (what products and modifiers leave),
// scores are compared with it before they are multiplied, and the reference is exactly 2^(max * scale). Such a row is
// looked at in every tile. A row that has seen no key has -kLargest: any finite score makes an infinity then, which is
// seen, if scale is not above 1.
constexpr float kExact = 1 << 24;
ATTN_INLINE bool is_large(float max) { return !(fabsf(max) < kExact); }

struct Reference {
  float max;
  bool raw;
  ATTN_INLINE bool empty() const { return max == (raw ? -infinity() : -kLargest); }
};
// That of a largest raw score.
ATTN_INLINE Reference reference(float score, float scale) {
  const float max = score * scale;
  if (score == -infinity())
    return scale > 1 ? Reference{score, true} : Reference{-kLargest, false};
  return is_large(max) ? Reference{score, true} : Reference{max, false};
}
// The one of a row that sees scores up to `now`, too.
ATTN_INLINE Reference raised(Reference before, float now, float scale) {
  if (before.raw)
    return reference(max(before.max, now), scale);
  return before.empty() | now * scale > before.max ? reference(now, scale) : before;
}
// The exponent that takes numbers relative to one reference to another.
ATTN_INLINE float step_to(Reference from, Reference to, float scale) {
  if (from.empty())
    return -infinity();
  if (from.raw)
    return to.raw ? (from.max - to.max) * scale : fmaf(from.max, scale, -to.max);
  return to.raw ? fmaf(-to.max, scale, from.max) : from.max - to.max;
}

// look() of rows has a bit for each whose reference is raw.
template <int R, int W> ATTN_INLINE Reference reference_of(const Rows<R, W> &row, int i) {
  return {row.max[i], (row.look() >> i & 1) != 0};
}
template <int R, int W> ATTN_INLINE void refer(Rows<R, W> &row, int i, Reference to) {
  row.max[i] = to.max;
  row.set_look((row.look() & ~(1 << i)) | int(to.raw) << i);
}

// The lane's share of each row's largest score.
template <int R, int N, int W> ATTN_INLINE void largest(float (&top)[R / W / 8], const Frag<R, N, W> &s) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    top[i] = -infinity();
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
      top[i] = max(top[i], max(s.v[i / 2][n][i % 2 * 2], s.v[i / 2][n][i % 2 * 2 + 1]));
  }
}
// Is a score of the warp by more than the slack above its row's reference, or has a row to be looked at? Of a row that
// has seen no key, a score that overflows if scaled is not above -kLargest.
template <int R, int W> ATTN_INLINE bool grows(const float (&top)[R / W / 8], const Rows<R, W> &row, float scale) {
  bool grew = row.look() != 0;
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    grew |= top[i] * scale > row.max[i] + kSlack;
    if (scale > 1)
      grew |= row.max[i] == -kLargest & top[i] != -infinity();
  }
  return __any_sync(~0u, grew);
}
// Row i gets a reference for scores up to `now`, if it is to move or has a raw one. What is returned multiplies what is
// relative to the one before.
template <int R, int W> ATTN_INLINE float raise(Rows<R, W> &row, int i, float now, bool moves, float scale) {
  const Reference before = reference_of(row, i), to = before.raw | moves ? raised(before, now, scale) : before;
  refer(row, i, to);
  return exp2(step_to(before, to, scale));
}
// Has a row a raw reference, or is it to get one? `now`: the largest scores of quads.
template <int R, int W> ATTN_INLINE bool is_raw(const Rows<R, W> &row, const float (&now)[R / W / 8], float scale) {
  bool raw = row.look() != 0;
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    raw |= is_large(now[i] * scale) & now[i] != -infinity();
  return __builtin_expect(__any_sync(~0u, raw), 0);
}
// The same for all rows, none of which is so.
template <int R, int W>
ATTN_INLINE void raise_all(float (&shrink)[R / W / 8], Rows<R, W> &row, const float (&now)[R / W / 8],
                           const bool (&moves)[R / W / 8], float scale) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    const float before = row.max[i];
    row.max[i] = moves[i] ? max(before, now[i] * scale) : before;
    shrink[i] = exp2(before - row.max[i]);
    row.sum[i] *= shrink[i];
  }
}
// The same for all rows, any of which may be. Scores of rows with a raw reference become relative to it; so is 0, what
// their exponents are relative to then.
template <int R, int N, int W>
ATTN_INLINE void raise_raw(float (&shrink)[R / W / 8], float (&at)[R / W / 8], Frag<R, N, W> &s, Rows<R, W> &row,
                           const float (&now)[R / W / 8], const bool (&moves)[R / W / 8], float scale) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    shrink[i] = raise(row, i, now[i], moves[i] | is_large(now[i] * scale), scale);
    row.sum[i] *= shrink[i];
    const Reference own = reference_of(row, i);
    at[i] = own.raw ? 0 : own.max;
    const float by = own.raw & own.max != -infinity() ? own.max : 0;
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
      s.v[i / 2][n][i % 2 * 2] -= by, s.v[i / 2][n][i % 2 * 2 + 1] -= by;
  }
}
// Who is not to look at maxima in the next tile has to be told of rows that have seen no key, where an infinity would
// not tell.
template <int R, int W> ATTN_INLINE void mark_unseen(Rows<R, W> &row, float scale) {
  if (scale > 1)
#pragma unroll
    for (int i = 0; i < R / W / 8; ++i)
      if (row.max[i] == -kLargest & !(row.look() >> i & 1))
        refer(row, i, {-infinity(), true});
}
template <int R, int W> ATTN_INLINE void quad_maxima(float (&top)[R / W / 8], const Rows<R, W> &) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i)
    top[i] = quad_max(top[i]);
}

// Scores become probabilities, relative to their rows' references, and join the sums.
template <int R, int N, int W>
ATTN_INLINE void exponentiate(Frag<R, N, W> &s, Rows<R, W> &row, const float (&at)[R / W / 8], float scale) {
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
ATTN_INLINE void softmax_step(Frag<R, N, W> &s, Rows<R, W> &row, Frag<R, C, W> &acc, float scale) {
  constexpr int rows = R / W / 8;
  float top[rows];
  largest(top, s);
  if (grows(top, row, scale)) {
    float shrink[rows];
    bool moves[rows];
#pragma unroll
    for (int i = 0; i < rows; ++i)
      moves[i] = true;
    quad_maxima(top, row);
    const bool raw = is_raw(row, top, scale);
    float at[rows];
    if (raw)
      raise_raw(shrink, at, s, row, top, moves, scale);
    else
      raise_all(shrink, row, top, moves, scale);
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int n = 0; n < acc.Pieces; ++n)
        acc.v[i / 2][n][i % 2 * 2] *= shrink[i], acc.v[i / 2][n][i % 2 * 2 + 1] *= shrink[i];
    if (raw)
      return exponentiate(s, row, at, scale);
  }
  exponentiate(s, row, row.max, scale);
}

// ln(sum of exp(score)) of a row that saw a key, rounded once. It is a float32: beside a largest score of 2^24 and
// more, nothing is left of the sum.
ATTN_INLINE float log_sum_exp(Reference of, float sum, float scale) {
  constexpr float ln2 = 0.693147182f, ln2_rest = -1.90465430e-9f;
  const float rest = log2(sum) * ln2;
  const float result = of.raw ? fmaf(of.max, scale * ln2, rest) : fmaf(of.max, ln2, fmaf(of.max, ln2_rest, rest));
  return result == result ? attn::min(attn::max(result, -kLargest), kLargest) : result;
}
// What the state of a row leaves: its LSE, or the state itself, for parts of the keys to be merged. There `max` is -inf
// in a part that saw no key, and a raw reference has a negative sum.
struct Partial {
  float *max, *sum;
};
ATTN_INLINE void store_row(float *lse, long long at, bool empty, Reference of, float sum, float scale) {
  lse[at] = empty ? -infinity() : log_sum_exp(of, sum, scale);
}
ATTN_INLINE void store_row(const Partial &to, long long at, bool empty, Reference of, float sum, float) {
  to.max[at] = empty ? -infinity() : of.empty() ? 0 : of.max; // the sum is NaN then
  to.sum[at] = of.raw ? -sum : sum;
}

// A key without a value, with this score in natural units: the row's reference and sum become those with it. `own` is
// its part of the sum, to be added by one lane of the row; what is returned multiplies the others. It may be 2^room
// times the weight of the row's maximum: a sink far above all scores, if it is the first of keys, would else make
// float16 of probabilities lose their bits.
ATTN_INLINE float join_sink(Reference &of, float &own, float sink, float scale, float room) {
  constexpr float log2e = 1.442695041f, ln2 = 0.693147181f;
  const float score = sink * log2e;
  own = 0;
  if (sink == -infinity() || (!of.raw && !of.empty() && is_large(of.max)))
    return 1; // normalize() leaves such a row to repair()
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

// Lanes of a quad share out a row's sum, so one of them has the sink.
template <int R, int C, int W, class First, class F>
ATTN_INLINE void add_sink(Frag<R, C, W> &acc, Rows<R, W> &row, float scale, First first, F f) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    float own;
    Reference of = reference_of(row, i);
    const float shrink = join_sink(of, own, sink_of(f, first, row.row(i)), scale, 32);
    refer(row, i, of);
    row.sum[i] = fmaf(row.sum[i], shrink, lane_index() % 4 == 0 ? own : 0);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      acc.v[i / 2][n][i % 2 * 2] *= shrink, acc.v[i / 2][n][i % 2 * 2 + 1] *= shrink;
  }
}

// acc / sum; a row that saw no key has sum 0 and gives 0. Completes row's sums over the quad, which store_lse() relies
// on. Repaired: a row that needs a raw reference and has none becomes NaN, for repair() to find.
template <bool Repaired = false, int R, int C, int W> ATTN_INLINE void normalize(Frag<R, C, W> &acc, Rows<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    row.sum[i] = quad_sum(row.sum[i]);
    // A row at -kLargest with a sum has scores there, one elsewhere without a sum has lost it to the reference's
    // rounding.
    const bool left =
        Repaired && is_large(row.max[i]) && !reference_of(row, i).raw && (row.max[i] != -kLargest || row.sum[i] != 0);
    const float factor = left ? not_a_number() : row.sum[i] == 0 ? 0 : reciprocal(row.sum[i]);
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      acc.v[i / 2][n][i % 2 * 2] *= factor, acc.v[i / 2][n][i % 2 * 2 + 1] *= factor;
  }
}

} // namespace attn
