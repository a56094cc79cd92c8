// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The postprocess kernel of the backward pass: dQ from its float32 accumulator, scaled and rounded; zeros in padding
// rows.
#pragma once
#include "attn/backward/dq_layout.cuh"
#include "attn/backward/grad_scores.cuh"
#include "attn/epilogue/store.cuh"

namespace attn {

// Accumulators stored row by row: 16 bytes a thread, with all loads of a tile in flight at once.
template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess_rows(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor) {
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
      if ((first + k * Threads) / Row < rows)
        x[c][k] = ((const float4 *)(sum + c * all * DqLayout::Columns) + first)[k * Threads];
    }
#pragma unroll
  for (int c = 0; c < Blocks; ++c)
#pragma unroll
    for (int k = 0; k < Steps; ++k) {
      const int row = (first + k * Threads) / Row, place = (first + k * Threads) % Row,
                column = c * DqLayout::Columns + (place * 4 ^ swizzle_of_row<DqLayout::Columns>(row));
      if (row < write_rows && column < Dim) {
        const float4 y = x[c][k];
        *(uint2 *)(dst + row * stride + column) = {pack<T>(y.x * factor, y.y * factor),
                                                   pack<T>(y.z * factor, y.w * factor)};
      }
    }
}

// Accumulators in register order.
template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess_fragments(T *dst, long long stride, const float *sum, int rows, int write_rows,
                                       float factor) {
  constexpr int Blocks = (Dim + DqLayout::Columns - 1) / DqLayout::Columns;
  Frag<DqLayout::Rows, Blocks * DqLayout::Columns, DqLayout::Rows / 16> acc;
  clear(acc);
#pragma unroll
  for (int c = 0; c < Blocks; ++c) {
    const DqBlock<DqLayout> block(c * (DqLayout::Rows / 64) + warp_index() / 4, rows);
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
  store<Dim>(dst, stride, sorted, rows, write_rows);
}

template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor) {
  if constexpr (DqLayout::InRegisterOrder)
    postprocess_fragments<Dim, DqLayout>(dst, stride, sum, rows, write_rows, factor);
  else
    postprocess_rows<Dim, DqLayout>(dst, stride, sum, rows, write_rows, factor);
}
// The same; the result is zero if the semaphore says that no tile was added.
template <int Dim, class DqLayout, class T>
ATTN_INLINE void postprocess(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor,
                             const int *semaphore) {
  postprocess<Dim, DqLayout>(dst, stride, sum, *semaphore ? rows : 0, write_rows, factor);
}

} // namespace attn
