// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMT tiles for short sequences: a row of a head is distributed over a group of lanes, sixteen bytes a lane, and moves
// between memory and registers directly. There is no shared memory, no barrier and no tensor core: a sequence of a few
// keys is bound by its loads, so all of them should be in flight at once.
//
// A warp has 32 / Lanes lane groups with one head each, so that a request of the warp is contiguous if heads are
// adjacent in memory.
#pragma once
#include "attn/block_map.cuh"
#include "attn/dropout_state.cuh"
#include "attn/modify.cuh"
#include "attn/softmax.cuh"

namespace attn {

// The index of this warp in the launch, and of the lane's group in its warp.
template <int Warps> ATTN_INLINE int global_warp_index() { return block_index() * Warps + uniform(warp_index()); }
template <int Lanes> ATTN_INLINE int lane_group_index() { return lane_index() / Lanes; }

// Distribution of a row's chunks of eight elements: consecutive chunks of a lane are Lanes chunks apart.
template <int ColCount, int LaneCount> struct SimtShape {
  static constexpr int Cols = ColCount, Lanes = LaneCount, Chunks = ColCount / 8, Own = (Chunks + Lanes - 1) / Lanes;
  static ATTN_INLINE int chunk(int i) { return lane_index() % Lanes + i * Lanes; }
  static ATTN_INLINE bool has(int i) { return Chunks % Lanes == 0 || chunk(i) < Chunks; }
};

// Rows as in memory.
template <class Element, int RowCount, int ColCount, int LaneCount> struct SimtTile : SimtShape<ColCount, LaneCount> {
  using T = Element;
  static constexpr int Rows = RowCount;
  uint4 v[RowCount][SimtShape<ColCount, LaneCount>::Own];
};
// Rows in float32.
template <int RowCount, int ColCount, int LaneCount>
struct SimtTile<float, RowCount, ColCount, LaneCount> : SimtShape<ColCount, LaneCount> {
  static constexpr int Rows = RowCount;
  float v[RowCount][SimtShape<ColCount, LaneCount>::Own][8];
};
// Scores and softmax state; all lanes of a group hold the same values.
template <int RowCount, int KeyCount, int LaneCount> struct SimtScores {
  float v[RowCount][KeyCount];
};
template <int RowCount, int LaneCount> struct SimtSoftmaxState {
  float max[RowCount], sum[RowCount];
  bool raw[RowCount]; // as in Reference
  ATTN_INLINE Reference reference(int r) const { return {max[r], raw[r]}; }
  ATTN_INLINE void set_reference(int r, Reference to) { max[r] = to.max, raw[r] = to.raw; }
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

// Loads rows [0, rows), zeros behind them: memory behind a sequence is never read.
template <class T, int R, int C, int L, class Stride>
ATTN_INLINE void load_rows(SimtTile<T, R, C, L> &to, const T *from, Stride stride, int rows) {
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
ATTN_INLINE void load_rows(SimtTile<float, R, C, L> &to, const T *from, Stride stride, int rows) {
  SimtTile<T, R, C, L> raw;
  load_rows(raw, from, stride, rows);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < to.Own; ++i)
      unpack<T>(to.v[r][i], raw.v[r][i]);
}

template <int R, int C, int L> ATTN_INLINE void clear(SimtTile<float, R, C, L> &x) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < x.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        x.v[r][i][c] = 0;
}
template <int R, int L> ATTN_INLINE void clear(SimtSoftmaxState<R, L> &row) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    row.set_reference(r, {-infinity(), true}), row.sum[r] = 0;
}

// Scores = Q K^T (or its negative). A key is unpacked once for all rows.
template <bool Negated = false, class T, int R, int N, int C, int L>
ATTN_INLINE void mma_abt(SimtScores<R, N, L> &s, const SimtTile<float, R, C, L> &q, const SimtTile<T, N, C, L> &k) {
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

// As for fragments, with the loop over rows outside.
template <int R, int N, int L, class First, class F>
ATTN_INLINE void apply_mask(SimtScores<R, N, L> &s, First q0, int k0, F f) {
  const float hidden = -infinity();
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = f(query_of(q0, r), k0 + n) ? s.v[r][n] : hidden;
}
template <int R, int N, int L, class First, class F>
ATTN_INLINE void modify(SimtScores<R, N, L> &s, First q0, int k0, F f) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
      s.v[r][n] = apply(f, s.v[r][n], q0, r, k0 + n, k0, float(n));
}
template <int R, int N, int L, class First, class Small, class F>
ATTN_INLINE void modify(SimtScores<R, N, L> &s, First q0, int k0, float within, Small small, F f) {
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

// Needs scale > 0. A NaN never becomes a maximum; its own probability is NaN.
template <int R, int N, int C, int L>
ATTN_INLINE void online_softmax(SimtScores<R, N, L> &s, SimtSoftmaxState<R, L> &row, SimtTile<float, R, C, L> &acc,
                                float scale) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float top = s.v[r][0];
#pragma unroll
    for (int n = 1; n < N; ++n)
      top = max(top, s.v[r][n]);
    const Reference before = row.reference(r), to = raised(before, top, scale);
    const float rescale_factor = exp2(step_to(before, to, scale)), at = to.raw ? 0 : to.max;
    row.set_reference(r, to), row.sum[r] *= rescale_factor;
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
        acc.v[r][i][c] *= rescale_factor;
  }
}

// All lanes of a group hold all scores: each computes the random numbers of some of them and shares the results by a
// ballot.
template <int R, int N, int L, class First, class D>
ATTN_INLINE void dropout(SimtScores<R, N, L> &s, First q0, int k0, D state, int threshold, float factor = 1) {
#pragma unroll
  for (int from = 0; from < R * N; from += L) {
    const int own = from + lane_index() % L, r = own / N;
    const unsigned keep =
        __ballot_sync(~0u, !state_of_row(state, q0, r).is_dropped(query_of(q0, r), k0 + own % N, threshold)) >>
        lane_index() / L * L;
#pragma unroll
    for (int i = 0; i < L && from + i < R * N; ++i) {
      float &x = s.v[(from + i) / N][(from + i) % N];
      x = keep >> i & 1 ? x * factor : 0;
    }
  }
}

// acc += P V with P in float32. Guarded: a weight of 0 means "masked", and 0 * NaN must not be computed.
template <bool Guarded, class T, int R, int N, int C, int L>
ATTN_INLINE void mma_ab_rows(SimtTile<float, R, C, L> &acc, const SimtScores<R, N, L> &p,
                             const SimtTile<T, N, C, L> &v) {
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
ATTN_INLINE void mma_ab(SimtTile<float, R, C, L> &acc, const SimtScores<R, N, L> &p, const SimtTile<T, N, C, L> &v) {
  mma_ab_rows<false>(acc, p, v);
}
template <class T, int R, int N, int C, int L>
ATTN_INLINE void mma_ab_guarded(SimtTile<float, R, C, L> &acc, const SimtScores<R, N, L> &p,
                                const SimtTile<T, N, C, L> &v, bool when = true) {
  if (when)
    mma_ab_rows<true>(acc, p, v);
  else
    mma_ab_rows<false>(acc, p, v);
}

// As for fragments; all lanes of a group have the row's sum.
template <int R, int C, int L, class First, class F>
ATTN_INLINE void add_sink(SimtTile<float, R, C, L> &acc, SimtSoftmaxState<R, L> &row, float scale, First first, F f) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float own;
    Reference of = row.reference(r);
    const float rescale_factor = join_sink(of, own, sink_of(f, first, r), scale, 0);
    row.set_reference(r, of);
    row.sum[r] = fmaf(row.sum[r], rescale_factor, own);
#pragma unroll
    for (int i = 0; i < acc.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        acc.v[r][i][c] *= rescale_factor;
  }
}

template <int R, int C, int L> ATTN_INLINE void normalize(SimtTile<float, R, C, L> &acc, SimtSoftmaxState<R, L> &row) {
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

template <int R, int C, int L> ATTN_INLINE void scale(SimtTile<float, R, C, L> &x, float factor) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < x.Own; ++i)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        x.v[r][i][c] *= factor;
}

// Stores rows [0, rows) rounded and zeros in rows [rows, write_rows).
template <int Dim, class T, class Stride, int R, int C, int L>
ATTN_INLINE void store(T *to, Stride stride, const SimtTile<float, R, C, L> &acc, int rows, int write_rows) {
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
ATTN_INLINE void store_lse(float *to, Stride stride, const SimtSoftmaxState<R, L> &row, float scale, int rows,
                           int write_rows) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < write_rows && lane_index() % L == r % L)
      store_row_state(to, offset_of(stride, r), r >= rows || row.sum[r] == 0, row.reference(r), row.sum[r], scale);
}
template <int R, int L>
ATTN_INLINE void store_lse(float *to, const SimtSoftmaxState<R, L> &row, float scale, int rows, int write_rows) {
  store_lse(to, 1ll, row, scale, rows, write_rows);
}

// Clears rows that belong to no sequence: every `step`th query of [begin, end), with all heads of its pairs.
ATTN_INLINE long long query_stride(long long stride) { return stride; }
template <int H> ATTN_INLINE long long query_stride(PairStride<H> stride) { return stride.query; }
template <class Stride> constexpr int kHeadsOf = 1;
template <int H> constexpr int kHeadsOf<PairStride<H>> = H;
template <int Dim, int Lanes, class T, class Stride>
ATTN_INLINE void store_padding_rows(T *to, Stride stride, int begin, int end, int step) {
  using Shape = SimtShape<Dim, Lanes>;
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
ATTN_INLINE void store_padding_rows(float *to, Stride stride, int begin, int end, int step) {
  static_assert(Dim == 1);
  for (long long q = begin + (long long)step * (lane_index() % Lanes); q < end; q += (long long)step * Lanes)
    for (int h = 0; h < kHeadsOf<Stride>; ++h)
      to[q * query_stride(stride) + offset_of(stride, h)] = -infinity();
}

} // namespace attn
