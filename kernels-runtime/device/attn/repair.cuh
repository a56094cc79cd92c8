// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What to do about NaN and Inf in keys that the mask keeps from a row.
#pragma once
#include "attn/drop.cuh"
#include "attn/modify.cuh"
#include "attn/ring.cuh"
#include "attn/softmax.cuh"

namespace attn {

ATTN_INLINE bool has_place(const float *lse) { return lse; }
ATTN_INLINE bool has_place(const Partial &) { return true; }

// A row without a sink has one that counts for nothing.
struct NoSink {
  ATTN_INLINE float operator()(int = 0) const { return -infinity(); }
};

// The tiles of Keys keys that a walk goes along.
template <int Keys, class F> struct Along {
  int tiles;
  F tile_at;
};
template <int Keys, class F> ATTN_INLINE Along<Keys, F> along(int tiles, F tile_at) { return {tiles, tile_at}; }
// Runs of keys: what a walk has behind its first key, or those of each tile.
struct KeyRun {
  int begin, end;
};
ATTN_INLINE int count_runs(int) { return 1; }
ATTN_INLINE KeyRun run_of(int first_key, int, int keys) { return {first_key, keys}; }
template <int Keys, class F> ATTN_INLINE int count_runs(const Along<Keys, F> &walk) { return walk.tiles; }
template <int Keys, class F> ATTN_INLINE KeyRun run_of(const Along<Keys, F> &walk, int j, int keys) {
  const int begin = walk.tile_at(j) * Keys;
  return {begin, min(begin + Keys, keys)};
}

// acc += P V cannot tell "may not see" from a weight of 0, and 0 * NaN is NaN: a NaN or Inf in V reaches rows that the
// mask keeps from it. Not without making their results NaN, though, so rows with a NaN are computed once more, one by
// one, a lane for every 32nd column, from visible keys alone, and written again (`lse` may be null). Only broken data
// pay for it; comes after the stores, when no accumulator is in the way.
template <int DimQk, int DimV, class T, class O, int R, int C, int W, class First, class Walk, class Stride,
          class OStride, class Lse, class LseStride, class F, class G = Unmodified, class S = NoSink,
          class D = NoneDropped>
ATTN_INLINE void repair(const Frag<R, C, W> &acc, First q0, int rows, Walk walk, int keys, const T *q, Stride q_row,
                        const T *k, long long k_row, const T *v, long long v_row, O *o, OStride o_row, Lse lse,
                        LseStride lse_row, float scale, F keep, G modified = {}, S sink = {}, D dropped = {}) {
  const int lane = lane_index();
  unsigned bad[2]; // a bit for each lane whose part of its row has a NaN, or the product of Inf and 0
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
#pragma unroll 1
    for (int i = 0; i < count_runs(walk); ++i) {
      const KeyRun run = run_of(walk, i, keys);
#pragma unroll 1
      for (int key = run.begin; key < run.end; ++key) {
        if (!keep(query_of(q0, r), key))
          continue;
        float score = 0;
#pragma unroll 1
        for (int d = lane; d < DimQk; d += 32)
          score = fmaf(to_float(q[offset_of(q_row, r) + d]), to_float(k[key * k_row + d]), score);
        score = apply(modified, warp_sum(score), q0, r, key, key, 0) * sign;
        const float now = max(top, score), shrink = top == now ? 1 : exp2((top - now) * size),
                    p = score == -infinity() ? 0 : exp2((score - now) * size);
        top = now, sum = sum * shrink + p;
        const bool drops = dropped(q0, r, key);
#pragma unroll
        for (int i = 0; i < Own; ++i)
          if (lane + i * 32 < DimV)
            out[i] = drops ? out[i] * shrink : fmaf(p, to_float(v[key * v_row + lane + i * 32]), out[i] * shrink);
      }
    }
    float own;
    Reference of = {top, true};
    const float shrink = join_sink(of, own, sink_of(sink, q0, r), size, 0);
    sum = fmaf(sum, shrink, own);
    const float factor = sum == 0 ? 0 : shrink * reciprocal(sum) * dropped.factor;
#pragma unroll
    for (int i = 0; i < Own; ++i)
      if (lane + i * 32 < DimV)
        round_to(o[offset_of(o_row, r) + lane + i * 32], out[i] * factor);
    if (has_place(lse) && lane == 0)
      store_row(lse, offset_of(lse_row, r), sum == 0, of, sum, size);
  }
}

// Of all keys, and rows that are queries.
template <int DimQk, int DimV, class T, int R, int C, int W, class F, class G = Unmodified, class S = NoSink,
          class D = NoneDropped>
ATTN_INLINE void repair(const Frag<R, C, W> &acc, int q0, int rows, int keys, const T *q, long long q_row, const T *k,
                        long long k_row, const T *v, long long v_row, T *o, long long o_row, float *lse, float scale,
                        F keep, G modified = {}, S sink = {}, D dropped = {}) {
  repair<DimQk, DimV>(acc, q0, rows, 0, keys, q, q_row, k, k_row, v, v_row, o, o_row, lse, 1ll, scale, keep, modified,
                      sink, dropped);
}

} // namespace attn
