// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMT tiles to global memory.
#pragma once
#include "attn/simt/tile.cuh"

namespace attn {

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
        *(uint4 *)(to + offset_of(stride, r) + acc.unit(i) * 8) = x;
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

// Clears rows that belong to no sequence: every `step`th query of [begin, end), with all heads of a pair.
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
          *(uint4 *)(to + q * query_stride(stride) + offset_of(stride, h) + Shape::unit(i) * 8) = {0, 0, 0, 0};
}
template <int Dim, int Lanes, class Stride>
ATTN_INLINE void store_padding_rows(float *to, Stride stride, int begin, int end, int step) {
  static_assert(Dim == 1);
  for (long long q = begin + (long long)step * (lane_index() % Lanes); q < end; q += (long long)step * Lanes)
    for (int h = 0; h < kHeadsOf<Stride>; ++h)
      to[q * query_stride(stride) + offset_of(stride, h)] = -infinity();
}

} // namespace attn
