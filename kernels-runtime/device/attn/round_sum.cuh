// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dQ from its sums: times a number, rounded, zeros in rows of padding.
#pragma once
#include "attn/epilogue.cuh"
#include "attn/sum_block.cuh"

namespace attn {

// Rows one by one as they lie in memory, 16 bytes a thread, all of a tile on their way at a time.
template <int Dim, class Sums, class T>
ATTN_INLINE void round_rows(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor) {
  constexpr int Threads = Sums::Rows * 2, Row = Sums::Columns / 4, Steps = Sums::Rows * Row / Threads,
                Blocks = (Dim + Sums::Columns - 1) / Sums::Columns;
  static_assert(Sums::Rows * Row % Threads == 0);
  const int first = threadIdx.x, all = min(rows, Sums::Rows);
  float4 x[Blocks][Steps];
#pragma unroll
  for (int c = 0; c < Blocks; ++c)
#pragma unroll
    for (int k = 0; k < Steps; ++k) {
      x[c][k] = {0, 0, 0, 0};
      if ((first + k * Threads) / Row < rows)
        x[c][k] = ((const float4 *)(sum + c * all * Sums::Columns) + first)[k * Threads];
    }
#pragma unroll
  for (int c = 0; c < Blocks; ++c)
#pragma unroll
    for (int k = 0; k < Steps; ++k) {
      const int row = (first + k * Threads) / Row, place = (first + k * Threads) % Row,
                column = c * Sums::Columns + (place * 4 ^ turned_row<Sums::Columns>(row));
      if (row < write_rows && column < Dim) {
        const float4 y = x[c][k];
        *(uint2 *)(dst + row * stride + column) = {pack<T>(y.x * factor, y.y * factor),
                                                   pack<T>(y.z * factor, y.w * factor)};
      }
    }
}

// What warpgroups added from registers.
template <int Dim, class Sums, class T>
ATTN_INLINE void round_held(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor) {
  constexpr int Blocks = (Dim + Sums::Columns - 1) / Sums::Columns;
  Frag<Sums::Rows, Blocks * Sums::Columns, Sums::Rows / 16> acc;
  clear(acc);
#pragma unroll
  for (int c = 0; c < Blocks; ++c) {
    const SumBlock<Sums> block(c * (Sums::Rows / 64) + warp_index() / 4, rows);
    move_block<ReadFloats, Sums>(sum + block.first, acc, c * (Sums::Columns / 8), block.rows);
  }
  scale(acc, factor);
  store<Dim>(dst, stride, acc, rows, write_rows);
}

template <int Dim, class Sums, class T>
ATTN_INLINE void round_sum(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor) {
  if constexpr (Sums::AsHeld)
    round_held<Dim, Sums>(dst, stride, sum, rows, write_rows, factor);
  else
    round_rows<Dim, Sums>(dst, stride, sum, rows, write_rows, factor);
}
// The same, of zeros if nobody added to it.
template <int Dim, class Sums, class T>
ATTN_INLINE void round_sum(T *dst, long long stride, const float *sum, int rows, int write_rows, float factor,
                           const int *turn) {
  round_sum<Dim, Sums>(dst, stride, sum, *turn ? rows : 0, write_rows, factor);
}

} // namespace attn
