// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layout of the float32 dQ accumulator in global memory. A sequence's last tile has only the rows that remain: without
// residues, the accumulator has exactly the rows of dQ.
#pragma once
#include "attn/mma/fragment.cuh"

namespace attn {

// Tiles have RowCount rows, or what remains of a sequence, and are added as fragments of ColumnCount columns.
// RegisterOrder: whole blocks are stored in the order of a warpgroup's registers.
template <int RowCount, int ColumnCount, bool RegisterOrder = false> struct DqLayout {
  static constexpr int Rows = RowCount, Columns = ColumnCount;
  static constexpr bool InRegisterOrder = RegisterOrder;
};

// The columns of blocks. A block of 96 columns, of which there are two, has the 64 first or last ones, and then half of
// those in the middle (mma_atb_block).
template <int Columns> struct DqColumns {
  static ATTN_INLINE constexpr int of_piece(int block, int piece) { return block * Columns + piece * 8; }
};
template <> struct DqColumns<96> {
  static ATTN_INLINE constexpr int of_piece(int block, int piece) {
    return piece < 8 ? block * 128 + piece * 8 : 64 + block * 32 + (piece - 8) * 8;
  }
};

// A tile consists of blocks of 64 rows, or what remains: first the blocks of all rows for the first ColumnCount
// columns, then those of the next columns. `left`: the rows that remain from the tile's first on.
template <class DqLayout> struct DqBlock {
  int first, rows; // index of the first float; rows <= 0: the block does not exist
  ATTN_INLINE DqBlock(int block, int left) {
    constexpr int count = DqLayout::Rows / 64;
    const int all = min(left, DqLayout::Rows), row = block % count * 64;
    first = (block / count * all + row) * DqLayout::Columns, rows = min(all - row, 64);
  }
};

// Within a block, rows follow each other, in pieces of eight columns of which a thread has a pair. Pieces within 128
// bytes are swizzled by row, so that sixteen threads access all banks: column x of a row is at x ^ swizzle.
template <int Columns> ATTN_INLINE int swizzle_of_row(int row) {
  static_assert(Columns == 16 || Columns % 32 == 0);
  return (Columns == 16 ? row / 2 % 2 : row % 4) * 8;
}
// Calls f(i, n, at, more) for the thread's pair in piece `n` of its row (i = 0) or of the row 8 below (i = 1). The pair
// is at index at + more of the block, where `more` is a constant.
template <int Columns, class F> ATTN_INLINE void for_pairs(unsigned thread, F f) {
  constexpr int Places = Columns == 16 ? 2 : 4;
  const int row = thread % 128 / 32 * 16 + thread % 32 / 4, first = row * Columns + int(thread % 4) * 2,
            swizzle = swizzle_of_row<Columns>(row);
#pragma unroll
  for (int p = 0; p < Places; ++p)
#pragma unroll
    for (int n = p; n < Columns / 8; n += Places)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        f(i, n, first + (p * 8 ^ swizzle), (n - p + i * Columns) * 8);
}

// Moves two or four floats of a thread to or from the accumulator.
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
// Moves the `rows` rows of a block to or from the pieces of a fragment from `first` on. In register order, each
// instruction of a warpgroup moves 2048 contiguous bytes of a whole block. (For 256 columns this is 1.07 times as fast
// as row by row, and up to 1.6 times in ordered accumulation.)
template <class Move, class DqLayout, class T, class Frag>
ATTN_INLINE void move_block(T *sum, Frag &acc, int first, int rows) {
  if (DqLayout::InRegisterOrder && rows == 64) {
    T *const at = sum + threadIdx.x % 128 * 4;
#pragma unroll
    for (int n = 0; n < DqLayout::Columns / 8; ++n)
      Move::template move<4>(at + n * 512, acc.v[0][first + n]);
    return;
  }
  const unsigned thread = reread_thread_index() % 128u;
  const int row = thread / 32 * 16 + thread % 32 / 4;
  const bool is_valid[2] = {row < rows, row + 8 < rows};
  for_pairs<DqLayout::Columns>(thread, [&](int i, int n, int at, int more) {
    if (is_valid[i])
      Move::template move<2>(sum + at + more, acc.v[0][first + n] + i * 2);
  });
}

// Clears `left` rows.
template <int Columns, int Threads> ATTN_INLINE void clear_accumulator(float *sum, int left) {
  for (int i = threadIdx.x; i < left * (Columns / 4); i += Threads)
    ((float4 *)sum)[i] = {0, 0, 0, 0};
}

} // namespace attn
