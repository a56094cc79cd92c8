// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMT tiles for short sequences: a row of a head is distributed over a group of lanes, sixteen bytes a lane, and moves
// between memory and registers directly. There is no shared memory, no barrier and no tensor core: a sequence of a few
// keys is bound by its loads, so all of them should be in flight at once.
//
// A warp has 32 / Lanes lane groups with one head each, so that a request of the warp is contiguous if heads are
// adjacent in memory.
#pragma once
#include "attn/softmax/reference.cuh"

namespace attn {

// The index of this warp in the launch, and of the lane's group in its warp.
template <int Warps> ATTN_INLINE int global_warp_index() { return block_index() * Warps + uniform(warp_index()); }
template <int Lanes> ATTN_INLINE int lane_group_index() { return lane_index() / Lanes; }

// Distribution of a row's units of eight elements: a lane owns every Lanes-th unit.
template <int ColCount, int LaneCount> struct SimtShape {
  static constexpr int Cols = ColCount, Lanes = LaneCount, Units = ColCount / 8, Own = (Units + Lanes - 1) / Lanes;
  static ATTN_INLINE int unit(int i) { return lane_index() % Lanes + i * Lanes; }
  static ATTN_INLINE bool has(int i) { return Units % Lanes == 0 || unit(i) < Units; }
};

// Rows with elements as in memory.
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
  bool unscaled[RowCount]; // as in Reference
  ATTN_INLINE Reference reference(int r) const { return {max[r], unscaled[r]}; }
  ATTN_INLINE void set_reference(int r, Reference to) { max[r] = to.max, unscaled[r] = to.unscaled; }
};

template <class T> ATTN_INLINE void unpack(float (&to)[8], uint4 x) {
  to[0] = low_half<T>(x.x), to[1] = high_half<T>(x.x), to[2] = low_half<T>(x.y), to[3] = high_half<T>(x.y);
  to[4] = low_half<T>(x.z), to[5] = high_half<T>(x.z), to[6] = low_half<T>(x.w), to[7] = high_half<T>(x.w);
}

ATTN_INLINE uint4 load_unit(const void *from) {
  uint4 x;
  asm("ld.global.nc.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x;
}

// Loads rows [0, rows), and zeros behind them: memory behind a sequence is never read.
template <class T, int R, int C, int L, class Stride>
ATTN_INLINE void load_rows(SimtTile<T, R, C, L> &to, const T *from, Stride stride, int rows) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < to.Own; ++i) {
      to.v[r][i] = {0, 0, 0, 0};
      if (r < rows && to.has(i))
        to.v[r][i] = load_unit(from + offset_of(stride, r) + to.unit(i) * 8);
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

// acc += P V with P in float32. Guarded: a weight of 0 means "hidden", and 0 * NaN must not be computed.
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

template <int R, int C, int L> ATTN_INLINE void scale_row(SimtTile<float, R, C, L> &x, int r, float factor) {
#pragma unroll
  for (int i = 0; i < x.Own; ++i)
#pragma unroll
    for (int c = 0; c < 8; ++c)
      x.v[r][i][c] *= factor;
}
template <int R, int C, int L> ATTN_INLINE void scale(SimtTile<float, R, C, L> &x, float factor) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    scale_row(x, r, factor);
}

} // namespace attn
