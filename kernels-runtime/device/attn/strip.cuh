// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short rows: a head's row is dealt to a group of lanes, sixteen bytes a lane, and goes from memory to registers and
// back. No shared memory, no barrier, no matrix unit: what a segment of a few keys costs is reading it, and what counts
// is that all of its loads are under way at once.
//
// A warp has 32 / Lanes groups ("slots"), one head each, so that a request of the warp is one contiguous run where
// heads lie side by side.
#pragma once
#include "attn/blocks.cuh"
#include "attn/draws.cuh"
#include "attn/modify.cuh"
#include "attn/softmax.cuh"

namespace attn {

// The number of this warp in the launch, and that of the lane's group in its warp.
template <int Warps> ATTN_INLINE int unit_index() { return block_index() * Warps + uniform(warp_index()); }
template <int Lanes> ATTN_INLINE int slot_index() { return lane_index() / Lanes; }

// How a row's chunks of eight elements are dealt: chunk i of a lane is Lanes chunks behind the one before it.
template <int ColCount, int LaneCount> struct StripShape {
  static constexpr int Cols = ColCount, Lanes = LaneCount, Chunks = ColCount / 8, Own = (Chunks + Lanes - 1) / Lanes;
  static ATTN_INLINE int chunk(int i) { return lane_index() % Lanes + i * Lanes; }
  static ATTN_INLINE bool has(int i) { return Chunks % Lanes == 0 || chunk(i) < Chunks; }
};

// Rows as they are in memory.
template <class Element, int RowCount, int ColCount, int LaneCount> struct Strip : StripShape<ColCount, LaneCount> {
  using T = Element;
  static constexpr int Rows = RowCount;
  uint4 v[RowCount][StripShape<ColCount, LaneCount>::Own];
};
// Rows to compute with.
template <int RowCount, int ColCount, int LaneCount>
struct Strip<float, RowCount, ColCount, LaneCount> : StripShape<ColCount, LaneCount> {
  static constexpr int Rows = RowCount;
  float v[RowCount][StripShape<ColCount, LaneCount>::Own][8];
};
// A score for each row and key, and the state of each row; all lanes of a group have the same.
template <int RowCount, int KeyCount, int LaneCount> struct Scores {
  float v[RowCount][KeyCount];
};
template <int RowCount, int LaneCount> struct StripRows {
  float max[RowCount], sum[RowCount];
  bool raw[RowCount]; // as of a Reference
  ATTN_INLINE Reference reference(int r) const { return {max[r], raw[r]}; }
  ATTN_INLINE void refer(int r, Reference to) { max[r] = to.max, raw[r] = to.raw; }
};

template <class T> ATTN_INLINE void unpack(float (&to)[8], uint4 x) {
  to[0] = low_half<T>(x.x), to[1] = high_half<T>(x.x), to[2] = low_half<T>(x.y), to[3] = high_half<T>(x.y);
  to[4] = low_half<T>(x.z), to[5] = high_half<T>(x.z), to[6] = low_half<T>(x.w), to[7] = high_half<T>(x.w);
}

ATTN_INLINE uint4 load_chunk(const void *from) {
  uint4 x;
  asm("ld.global.nc.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x;
}

// Rows [0, rows), zeros behind them: nothing beyond a segment is ever read.
template <class T, int R, int C, int L, class Stride>
ATTN_INLINE void fetch(Strip<T, R, C, L> &to, const T *from, Stride stride, int rows) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < to.Own; ++i) {
      to.v[r][i] = {0, 0, 0, 0};
      if (r < rows && to.has(i))
        to.v[r][i] = load_chunk(from + offset_of(stride, r) + to.chunk(i) * 8);
    }
}
template <class T, int R, int C, int L, class Stride>
ATTN_INLINE void fetch(Strip<float, R, C, L> &to, const T *from, Stride stride, int rows) {
  Strip<T, R, C, L> raw;
  fetch(raw, from, stride, rows);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < to.Own; ++i)
      unpack<T>(to.v[r][i], raw.v[r][i]);
}

template <int R, int C, int L> ATTN_INLINE void clear(Strip<float, R, C, L> &x) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < x.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        x.v[r][i][c] = 0;
}
template <int R, int L> ATTN_INLINE void clear(StripRows<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    row.refer(r, {-infinity(), true}), row.sum[r] = 0;
}

// Scores = Q K^T (or its negative). A key is unpacked once for all rows.
template <bool Negated = false, class T, int R, int N, int C, int L>
ATTN_INLINE void mma_qk(Scores<R, N, L> &s, const Strip<float, R, C, L> &q, const Strip<T, N, C, L> &k) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    float sum[R] = {};
#pragma unroll
    for (int i = 0; i < k.Own; ++i) {
      float key[8];
      unpack<T>(key, k.v[n][i]);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < 8; ++c)
          sum[r] = fmaf(q.v[r][i][c], key[c], sum[r]);
    }
#pragma unroll
    for (int r = 0; r < R; ++r)
      s.v[r][n] = sum_of_group<L>(Negated ? -sum[r] : sum[r]);
  }
}

// As in keep() and modify() of fragments, rows outside.
template <int R, int N, int L, class First, class F> ATTN_INLINE void keep(Scores<R, N, L> &s, First q0, int k0, F f) {
  const float refused = -infinity();
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = f(query_of(q0, r), k0 + n) ? s.v[r][n] : refused;
}
template <int R, int N, int L, class First, class F>
ATTN_INLINE void modify(Scores<R, N, L> &s, First q0, int k0, F f) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = apply(f, s.v[r][n], q0, r, k0 + n, k0, float(n));
}
template <int R, int N, int L, class First, class Small, class F>
ATTN_INLINE void modify(Scores<R, N, L> &s, First q0, int k0, float within, Small small, F f) {
  float largest = 0;
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      largest = max(largest, abs(s.v[r][n]));
  if (__any_sync(~0u, largest >= within))
    modify(s, q0, k0, f);
  else
    modify(s, q0, k0, small);
}

// Needs scale > 0. A maximum takes no NaN; its own probability is one.
template <int R, int N, int C, int L>
ATTN_INLINE void softmax_step(Scores<R, N, L> &s, StripRows<R, L> &row, Strip<float, R, C, L> &acc, float scale) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float top = s.v[r][0];
#pragma unroll
    for (int n = 1; n < N; ++n)
      top = max(top, s.v[r][n]);
    const Reference before = row.reference(r), to = raised(before, top, scale);
    const float shrink = exp2(step_to(before, to, scale)), at = to.raw ? 0 : to.max;
    row.refer(r, to), row.sum[r] *= shrink;
    if (to.raw & to.max != -infinity())
#pragma unroll
      for (int n = 0; n < N; ++n)
        s.v[r][n] -= to.max;
#pragma unroll
    for (int n = 0; n < N; ++n)
      row.sum[r] += s.v[r][n] = exp2(fmaf(s.v[r][n], scale, -at));
#pragma unroll
    for (int i = 0; i < acc.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        acc.v[r][i][c] *= shrink;
  }
}

// All lanes of a group have all scores: each draws for its share of them and tells the others.
template <int R, int N, int L, class First, class D>
ATTN_INLINE void drop(Scores<R, N, L> &s, First q0, int k0, D draws, int below, float factor = 1) {
#pragma unroll
  for (int from = 0; from < R * N; from += L) {
    const int own = from + lane_index() % L, r = own / N;
    const unsigned kept =
        __ballot_sync(~0u, !draws_of(draws, q0, r).drops(query_of(q0, r), k0 + own % N, below)) >> lane_index() / L * L;
#pragma unroll
    for (int i = 0; i < L && from + i < R * N; ++i) {
      float &x = s.v[(from + i) / N][(from + i) % N];
      x = kept >> i & 1 ? x * factor : 0;
    }
  }
}

// acc += P V. P is not rounded. Guarded: a weight of 0 stands for "may not see", and 0 * NaN must not be computed.
template <bool Guarded, class T, int R, int N, int C, int L>
ATTN_INLINE void weigh_rows(Strip<float, R, C, L> &acc, const Scores<R, N, L> &p, const Strip<T, N, C, L> &v) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < acc.Own; ++i) {
      float value[8];
      unpack<T>(value, v.v[n][i]);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          const float sum = fmaf(p.v[r][n], value[c], acc.v[r][i][c]);
          acc.v[r][i][c] = Guarded && p.v[r][n] == 0 ? acc.v[r][i][c] : sum;
        }
    }
}
template <class T, int R, int N, int C, int L>
ATTN_INLINE void mma_pv(Strip<float, R, C, L> &acc, const Scores<R, N, L> &p, const Strip<T, N, C, L> &v) {
  weigh_rows<false>(acc, p, v);
}
template <class T, int R, int N, int C, int L>
ATTN_INLINE void mma_pv_guarded(Strip<float, R, C, L> &acc, const Scores<R, N, L> &p, const Strip<T, N, C, L> &v,
                                bool when = true) {
  if (when)
    weigh_rows<true>(acc, p, v);
  else
    weigh_rows<false>(acc, p, v);
}

// As that of fragments; all lanes of a group have the row's sum.
template <int R, int C, int L, class First, class F>
ATTN_INLINE void add_sink(Strip<float, R, C, L> &acc, StripRows<R, L> &row, float scale, First first, F f) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float own;
    Reference of = row.reference(r);
    const float shrink = join_sink(of, own, sink_of(f, first, r), scale, 0);
    row.refer(r, of);
    row.sum[r] = fmaf(row.sum[r], shrink, own);
#pragma unroll
    for (int i = 0; i < acc.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        acc.v[r][i][c] *= shrink;
  }
}

template <int R, int C, int L> ATTN_INLINE void normalize(Strip<float, R, C, L> &acc, StripRows<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const float factor = row.sum[r] == 0 ? 0 : reciprocal(row.sum[r]);
#pragma unroll
    for (int i = 0; i < acc.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        acc.v[r][i][c] *= factor;
  }
}

template <int R, int C, int L> ATTN_INLINE void scale(Strip<float, R, C, L> &x, float factor) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < x.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        x.v[r][i][c] *= factor;
}

// Rows [0, rows), rounded, and zeros from there to write_rows.
template <int Dim, class T, class Stride, int R, int C, int L>
ATTN_INLINE void store(T *to, Stride stride, const Strip<float, R, C, L> &acc, int rows, int write_rows) {
  static_assert(Dim == C);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < acc.Own; ++i)
      if (r < write_rows && acc.has(i)) {
        const float *v = acc.v[r][i];
        uint4 x = {pack<T>(v[0], v[1]), pack<T>(v[2], v[3]), pack<T>(v[4], v[5]), pack<T>(v[6], v[7])};
        if (r >= rows)
          x = {0, 0, 0, 0};
        *(uint4 *)(to + offset_of(stride, r) + acc.chunk(i) * 8) = x;
      }
}
template <class Stride, int R, int L>
ATTN_INLINE void store_lse(float *to, Stride stride, const StripRows<R, L> &row, float scale, int rows,
                           int write_rows) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < write_rows && lane_index() % L == r % L)
      store_row(to, offset_of(stride, r), r >= rows || row.sum[r] == 0, row.reference(r), row.sum[r], scale);
}
template <int R, int L>
ATTN_INLINE void store_lse(float *to, const StripRows<R, L> &row, float scale, int rows, int write_rows) {
  store_lse(to, 1ll, row, scale, rows, write_rows);
}

// Rows that belong to no sequence: every `step`th query of [begin, end), with all heads that a row's pair may have.
ATTN_INLINE long long query_stride(long long stride) { return stride; }
template <int H> ATTN_INLINE long long query_stride(PairStride<H> stride) { return stride.query; }
template <class Stride> constexpr int kHeadsOf = 1;
template <int H> constexpr int kHeadsOf<PairStride<H>> = H;
template <int Dim, int Lanes, class T, class Stride>
ATTN_INLINE void pad_rows(T *to, Stride stride, int begin, int end, int step) {
  using Shape = StripShape<Dim, Lanes>;
#pragma unroll 1
  for (long long q = begin; q < end; q += step)
#pragma unroll
    for (int h = 0; h < kHeadsOf<Stride>; ++h)
#pragma unroll
      for (int i = 0; i < Shape::Own; ++i)
        if (Shape::has(i))
          *(uint4 *)(to + q * query_stride(stride) + offset_of(stride, h) + Shape::chunk(i) * 8) = {0, 0, 0, 0};
}
template <int Dim, int Lanes, class Stride>
ATTN_INLINE void pad_rows(float *to, Stride stride, int begin, int end, int step) {
  static_assert(Dim == 1);
  for (long long q = begin + (long long)step * (lane_index() % Lanes); q < end; q += (long long)step * Lanes)
    for (int h = 0; h < kHeadsOf<Stride>; ++h)
      to[q * query_stride(stride) + offset_of(stride, h)] = -infinity();
}

} // namespace attn
