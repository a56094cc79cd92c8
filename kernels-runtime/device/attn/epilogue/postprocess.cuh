// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The postprocess kernel of the backward pass: dQ from its float32 accumulator, scaled, added to what was there before,
// and rounded; zeros in padding rows.
#pragma once
#include "attn/backward/dq_layout.cuh"
#include "attn/backward/grad_scores.cuh"
#include "attn/epilogue/store.cuh"

namespace attn {

// Rows that are added to dQ: none, or float32 rows at a stride.
struct NothingBefore {
  static constexpr bool Exists = false;
};
struct RowsBefore {
  static constexpr bool Exists = true;
  const float *rows;
  long long stride;
};

// Four columns of a row.
template <class T> ATTN_INLINE void store_columns(T *to, float4 x) {
  *(uint2 *)to = {pack<T>(x.x, x.y), pack<T>(x.z, x.w)};
}
ATTN_INLINE void store_columns(float *to, float4 x) { *(float4 *)to = x; }

// Accumulators stored row by row: 16 bytes a thread, with all loads of a tile in flight at once.
template <int Dim, class DqLayout, class T, class Before>
ATTN_INLINE void postprocess_rows(T *dst, long long stride, const float *sum, int rows, int added, int write_rows,
                                  float factor, Before before) {
  constexpr int Threads = DqLayout::Rows * 2, Row = DqLayout::Columns / 4, Steps = DqLayout::Rows * Row / Threads,
                Blocks = (Dim + DqLayout::Columns - 1) / DqLayout::Columns;
  static_assert(DqLayout::Rows * Row % Threads == 0);
  const int first = threadIdx.x, all = min(rows, DqLayout::Rows);
  float4 x[Blocks][Steps];
#pragma unroll
  for (int c = 0; c < Blocks; ++c)
#pragma unroll
    for (int k = 0; k < Steps; ++k) {
      x[c][k] = {0, 0, 0, 0};
      if ((first + k * Threads) / Row < added)
        x[c][k] = ((const float4 *)(sum + c * all * DqLayout::Columns) + first)[k * Threads];
    }
#pragma unroll
  for (int c = 0; c < Blocks; ++c)
#pragma unroll
    for (int k = 0; k < Steps; ++k) {
      const int row = (first + k * Threads) / Row, place = (first + k * Threads) % Row,
                column = c * DqLayout::Columns + (place * 4 ^ swizzle_of_row<DqLayout::Columns>(row));
      if (row < write_rows && column < Dim) {
        float4 y = x[c][k];
        y = {y.x * factor, y.y * factor, y.z * factor, y.w * factor};
        if constexpr (Before::Exists)
          if (row < rows) {
            const float4 z = *(const float4 *)(before.rows + row * before.stride + column);
            y = {y.x + z.x, y.y + z.y, y.z + z.z, y.w + z.w};
          }
        store_columns(dst + row * stride + column, y);
      }
    }
}

// Accumulators in register order.
template <int Dim, class DqLayout, class T, class Before>
ATTN_INLINE void postprocess_fragments(T *dst, long long stride, const float *sum, int rows, int added, int write_rows,
                                       float factor, Before before) {
  constexpr int Blocks = (Dim + DqLayout::Columns - 1) / DqLayout::Columns;
  Frag<DqLayout::Rows, Blocks * DqLayout::Columns, DqLayout::Rows / 16> acc;
  clear(acc);
#pragma unroll
  for (int c = 0; c < Blocks; ++c) {
    const DqBlock<DqLayout> block(c * (DqLayout::Rows / 64) + warp_index() / 4, added);
    move_block<ReadFloats, DqLayout>(sum + block.first, acc, c * (DqLayout::Columns / 8), block.rows);
  }
  Frag<DqLayout::Rows, Blocks * DqLayout::Columns, DqLayout::Rows / 16> sorted;
  constexpr int pieces = DqLayout::Columns / 8;
#pragma unroll
  for (int piece = 0; piece < Blocks * pieces; ++piece)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sorted.v[0][DqColumns<DqLayout::Columns>::of_piece(piece / pieces, piece % pieces) / 8][i] = acc.v[0][piece][i];
  scale(sorted, factor);
  if constexpr (Before::Exists)
    add_rows<Dim>(sorted, before.rows, before.stride, rows);
  store<Dim>(dst, stride, sorted, rows, write_rows);
}

// Rows from `added` on have no sum, but may have something before.
template <int Dim, class DqLayout, class T, class Before>
ATTN_INLINE void postprocess(T *dst, long long stride, const float *sum, int rows, int added, int write_rows,
                             float factor, Before before) {
  if constexpr (DqLayout::InRegisterOrder)
    postprocess_fragments<Dim, DqLayout>(dst, stride, sum, rows, added, write_rows, factor, before);
  else
    postprocess_rows<Dim, DqLayout>(dst, stride, sum, rows, added, write_rows, factor, before);
}
template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor) {
  postprocess<Dim, DqLayout>(dst, stride, sum, rows, rows, write_rows, factor, NothingBefore());
}
template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor,
                             RowsBefore before) {
  postprocess<Dim, DqLayout>(dst, stride, sum, rows, rows, write_rows, factor, before);
}
// The same; the sum is zero if the semaphore says that no tile was added.
template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor,
                             const int *semaphore) {
  const int added = *semaphore ? rows : 0;
  postprocess<Dim, DqLayout>(dst, stride, sum, added, added, write_rows, factor, NothingBefore());
}
template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor,
                             RowsBefore before, const int *semaphore) {
  postprocess<Dim, DqLayout>(dst, stride, sum, rows, *semaphore ? rows : 0, write_rows, factor, before);
}

} // namespace attn
