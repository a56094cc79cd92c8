// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recomputes rows whose result is NaN because of a NaN or Inf in hidden keys, or for want of an unscaled reference.
#pragma once
#include "attn/softmax/dropout.cuh"
#include "attn/softmax/modify.cuh"
#include "attn/softmax/softmax.cuh"

namespace attn {

ATTN_INLINE bool is_stored(const float *lse) { return lse; }
ATTN_INLINE bool is_stored(const PartialState &) { return true; }

// The sink of a problem without sinks: it has no weight.
struct NoSink {
  ATTN_INLINE float operator()(int = 0) const { return -infinity(); }
};

// Keys from `begin` to `end`, that of `begin` in this row of K and V.
struct KeyRange {
  int begin, end, row;
};
// The ranges of keys that a kernel processes: all from the first key on, or those that `range_at` returns.
template <class F> struct KeyRanges {
  int count;
  F range_at;
};
template <class F> ATTN_INLINE KeyRanges<F> key_ranges(int count, F range_at) { return {count, range_at}; }
ATTN_INLINE int range_count(int) { return 1; }
ATTN_INLINE KeyRange range_of(int first_key, int, int keys) { return {first_key, keys, first_key}; }
template <class F> ATTN_INLINE int range_count(const KeyRanges<F> &ranges) { return ranges.count; }
template <class F> ATTN_INLINE KeyRange range_of(const KeyRanges<F> &ranges, int j, int) { return ranges.range_at(j); }

// The partial result from which rows continue: the first row of O, and the softmax states.
struct Before {
  const float *o;
  long long row;
  const float *max, *sum;
};
struct NoBefore {};

// Sets what a row of a warp continues from: its largest score, the sum, and the lane's columns of O times the sum,
// relative to scores before they are scaled by `size`.
template <int DimV, int Own> ATTN_INLINE void begin_row(NoBefore, int, float, float &, float &, float (&)[Own]) {}
template <int DimV, int Own>
ATTN_INLINE void begin_row(const Before &before, int r, float size, float &top, float &sum, float (&out)[Own]) {
  const float max = before.max[r];
  if (max == -infinity())
    return;
  const Reference from = {max, before.sum[r] < 0}, to = {from.unscaled ? max : max / size, true};
  top = to.max, sum = fabsf(before.sum[r]) * exp2(conversion_exponent(from, to, size));
#pragma unroll
  for (int i = 0; i < Own; ++i)
    if (int column = lane_index() + i * 32; column < DimV)
      out[i] = before.o[r * before.row + column] * sum;
}

// In acc += P V, 0 * NaN is NaN, so a NaN or Inf in V makes rows NaN from which its key is hidden. Rows with a NaN are
// recomputed one by one, from visible keys alone, with a lane for every 32nd column, and stored again (`lse` may be
// null). Other rows cost a test. This follows the stores, when the accumulator is no longer live.
template <int DimQk, int DimV, class T, class O, int R, int C, int W, class First, class Ranges, class Stride,
          class OStride, class Lse, class LseStride, class F, class G = Unmodified, class S = NoSink,
          class D = NoDropout, class B = NoBefore>
ATTN_INLINE void recompute_rows(const Frag<R, C, W> &acc, First q0, int rows, Ranges ranges, int keys, const T *q,
                                Stride q_row, const T *k, long long k_row, const T *v, long long v_row, O *o,
                                OStride o_row, Lse lse, LseStride lse_row, float scale, F is_visible, G modified = {},
                                S sink = {}, D dropout = {}, B before = {}) {
  const int lane = lane_index();
  unsigned bad[2]; // a bit for each lane whose part of its row has a NaN or Inf
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < acc.Pieces; ++n)
      sum = fmaf(acc.v[0][n][2 * half], 0, fmaf(acc.v[0][n][2 * half + 1], 0, sum));
    bad[half] = __ballot_sync(~0u, sum != 0 && acc.row(half) < rows);
  }
#pragma unroll 1
  while (bad[0] | bad[1]) {
    const int half = bad[0] ? 0 : 1, quad = (__ffs(half ? bad[1] : bad[0]) - 1) / 4,
              r = warp_index() * 16 + half * 8 + quad;
    (half ? bad[1] : bad[0]) &= ~(15u << quad * 4);
    constexpr int Own = (DimV + 31) / 32;
    float top = -infinity(), sum = 0, out[Own] = {};
    const float sign = scale < 0 ? -1 : 1, size = fabsf(scale);
    begin_row<DimV>(before, r, size, top, sum, out);
#pragma unroll 1
    for (int i = 0; i < range_count(ranges); ++i) {
      const KeyRange run = range_of(ranges, i, keys);
      const long long first_row = run.row - run.begin;
#pragma unroll 1
      for (int key = run.begin; key < run.end; ++key) {
        if (!is_visible(query_of(q0, r), key))
          continue;
        float score = 0;
#pragma unroll 1
        for (int d = lane; d < DimQk; d += 32)
          score = fmaf(to_float(q[offset_of(q_row, r) + d]), to_float(k[(first_row + key) * k_row + d]), score);
        score = apply(modified, warp_sum(score), q0, r, key, key, 0) * sign;
        const float now = max(top, score), rescale_factor = top == now ? 1 : exp2((top - now) * size),
                    p = score == -infinity() ? 0 : exp2((score - now) * size);
        top = now, sum = sum * rescale_factor + p;
        const bool skips_value = dropout(q0, r, key);
#pragma unroll
        for (int i = 0; i < Own; ++i)
          if (lane + i * 32 < DimV)
            out[i] = skips_value
                         ? out[i] * rescale_factor
                         : fmaf(p, to_float(v[(first_row + key) * v_row + lane + i * 32]), out[i] * rescale_factor);
      }
    }
    float own;
    Reference of = {top, true};
    const float rescale_factor = join_sink(of, own, sink_of(sink, q0, r), size, 0);
    sum = fmaf(sum, rescale_factor, own);
    const float factor = sum == 0 ? 0 : rescale_factor * reciprocal(sum) * dropout.factor;
#pragma unroll
    for (int i = 0; i < Own; ++i)
      if (lane + i * 32 < DimV)
        round_to(o[offset_of(o_row, r) + lane + i * 32], out[i] * factor);
    if (is_stored(lse) && lane == 0)
      store_row_state(lse, offset_of(lse_row, r), sum == 0, of, sum, size);
  }
}

// The shorter form: all keys, and rows that are queries.
template <int DimQk, int DimV, class T, int R, int C, int W, class F, class G = Unmodified, class S = NoSink,
          class D = NoDropout>
ATTN_INLINE void recompute_rows(const Frag<R, C, W> &acc, int q0, int rows, int keys, const T *q, long long q_row,
                                const T *k, long long k_row, const T *v, long long v_row, T *o, long long o_row,
                                float *lse, float scale, F is_visible, G modified = {}, S sink = {}, D dropout = {}) {
  recompute_rows<DimQk, DimV>(acc, q0, rows, 0, keys, q, q_row, k, k_row, v, v_row, o, o_row, lse, 1ll, scale,
                              is_visible, modified, sink, dropout);
}

} // namespace attn
