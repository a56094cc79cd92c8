// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where float32 sums of fragments lie in global memory: rows that there are, and no others, so all of them are as long
// as the tensor whose gradient they become.
#pragma once
#include "attn/fragment.cuh"

namespace attn {

// Of tiles of so many rows, or what is left of a sequence's, added as fragments of so many columns; as held: from
// registers.
template <int RowCount, int ColumnCount, bool FromRegisters = false> struct Sums {
  static constexpr int Rows = RowCount, Columns = ColumnCount;
  static constexpr bool AsHeld = FromRegisters;
};

// A tile comes in blocks of 64 rows or what is left: blocks of all rows first, then those of the next columns.
template <class Sums> struct SumBlock {
  int first, rows; // in floats; 0 or less: there are none
  ATTN_INLINE SumBlock(int block, int left) {
    constexpr int count = Sums::Rows / 64;
    const int all = min(left, Sums::Rows), row = block % count * 64;
    first = (block / count * all + row) * Sums::Columns, rows = min(all - row, 64);
  }
};

// In a block row follows row, each in pieces of eight columns, of which a thread has a pair. Those of 128 bytes change
// places, another way in each of the rows that would meet the same banks, so that sixteen threads meet all: column x of
// a row is at x ^ turned.
template <int Columns> ATTN_INLINE int turned_row(int row) {
  static_assert(Columns == 16 || Columns % 32 == 0);
  return (Columns == 16 ? row / 2 % 2 : row % 4) * 8;
}
// `f(i, n, at, more)`: of piece `n` in the thread's row, or, with i = 1, the one 8 below, at a place and a constant
// number of floats behind it.
template <int Columns, class F> ATTN_INLINE void for_pairs(unsigned thread, F f) {
  constexpr int Places = Columns == 16 ? 2 : 4;
  const int row = thread % 128 / 32 * 16 + thread % 32 / 4, first = row * Columns + int(thread % 4) * 2,
            turned = turned_row<Columns>(row);
#pragma unroll
  for (int p = 0; p < Places; ++p)
#pragma unroll
    for (int n = p; n < Columns / 8; n += Places)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        f(i, n, first + (p * 8 ^ turned), (n - p + i * Columns) * 8);
}

// Two or four floats that a thread has, to or from a sum.
struct WriteFloats {
  template <int N> static ATTN_INLINE void move(float *sum, const float *x) {
    if constexpr (N == 4)
      *(float4 *)sum = {x[0], x[1], x[2], x[3]};
    else
      *(float2 *)sum = {x[0], x[1]};
  }
};
struct AddFloats {
  template <int N> static ATTN_INLINE void move(float *sum, const float *x) {
    if constexpr (N == 4)
      asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sum), "f"(x[0]), "f"(x[1]), "f"(x[2]),
                   "f"(x[3])
                   : "memory");
    else
      asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(sum), "f"(x[0]), "f"(x[1]) : "memory");
  }
};
struct ReadFloats {
  template <int N> static ATTN_INLINE void move(const float *sum, float *x) {
    if constexpr (N == 4) {
      const float4 y = *(const float4 *)sum;
      x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
    } else {
      const float2 y = *(const float2 *)sum;
      x[0] = y.x, x[1] = y.y;
    }
  }
};
// The same in global memory, of rows that are there: a block, and of a fragment so many pieces from `first` on. From
// registers, a whole block is in the order in which a warpgroup has it, 2048 bytes at a time. (Of sums of 256 columns
// that is 1.07 times the speed of rows one by one, and up to 1.6 times in turns.)
template <class Move, class Sums, class T, class Frag>
ATTN_INLINE void move_block(T *sum, Frag &acc, int first, int rows) {
  if (Sums::AsHeld && rows == 64) {
    T *const at = sum + threadIdx.x % 128 * 4;
#pragma unroll
    for (int n = 0; n < Sums::Columns / 8; ++n)
      Move::template move<4>(at + n * 512, acc.v[0][first + n]);
    return;
  }
  const unsigned thread = thread_here() % 128u;
  const int row = thread / 32 * 16 + thread % 32 / 4;
  const bool isThere[2] = {row < rows, row + 8 < rows};
  for_pairs<Sums::Columns>(thread, [&](int i, int n, int at, int more) {
    if (isThere[i])
      Move::template move<2>(sum + at + more, acc.v[0][first + n] + i * 2);
  });
}

// `left` rows of zeros.
template <int Columns, int Threads> ATTN_INLINE void clear_sum(float *sum, int left) {
  for (int i = threadIdx.x; i < left * (Columns / 4); i += Threads)
    ((float4 *)sum)[i] = {0, 0, 0, 0};
}

} // namespace attn
