// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Storage of tiles. Tile ops take tiles by reference, destination first; nothing returns a tile by value.
//
// A fragment is distributed to threads as mma.m16n8k16 leaves its accumulator. Warp w owns the Rows / Warps rows from w
// * Rows / Warps on, in blocks of 16 rows; in a piece (eight columns) of such a block, lane 4g + t holds
//
//            columns 2t, 2t+1
//   row g       v[0] v[1]          so the four lanes of a "quad" share their rows, two rows a block,
//   row g + 8   v[2] v[3]          and a row's reduction ends with two exchanges inside the quad.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// A tile in dynamic shared memory, at a byte offset. Pitch is the distance between rows in elements. With an odd
// multiple of 16 bytes, the eight 16 byte pieces that ldmatrix reads at a time fall into different banks, and every
// address is "one register + constant", which a swizzle would not allow: with 128 accumulators a thread, registers are
// the scarce resource.
template <class Element, int RowCount, int ColCount, int PitchElements> struct Smem {
  using T = Element;
  static constexpr int Rows = RowCount, Cols = ColCount, Pitch = PitchElements;
  static_assert(Cols % 16 == 0 && Pitch % 8 == 0 && Pitch >= Cols);
  unsigned address; // in the shared window: 32 bits

  ATTN_INLINE explicit Smem(int offset) : address(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  ATTN_INLINE unsigned at(int row, int col) const { return address + (row * Pitch + col) * 2; }
};

ATTN_INLINE unsigned &word_at(unsigned address) { return *(unsigned *)__cvta_shared_to_generic(address); }
ATTN_INLINE uint4 &unit_at(unsigned address) { return *(uint4 *)__cvta_shared_to_generic(address); }

// The row distribution that all register tiles share: Blocks blocks of 16 rows a warp, and two rows of each block in a
// lane.
template <int RowCount, int WarpCount> struct RowShape {
  static constexpr int Rows = RowCount, Warps = WarpCount, Blocks = RowCount / WarpCount / 16;
  static_assert(Blocks >= 1 && Rows == Blocks * Warps * 16);
  // The lane's row number i = 2 * block + half.
  static ATTN_INLINE int row(int i) { return warp_index() * (Blocks * 16) + i * 8 + lane_index() / 4; }
  // The same, recomputed at the use instead of kept in a register.
  static ATTN_INLINE int recomputed_row(int i) {
    const unsigned thread = reread_thread_index();
    return thread / 32 * (Blocks * 16) + i * 8 + thread % 32 / 4;
  }
};

// A float32 accumulator.
template <int RowCount, int ColCount, int WarpCount> struct Frag : RowShape<RowCount, WarpCount> {
  static constexpr int Cols = ColCount, Pieces = ColCount / 8;
  float v[RowCount / WarpCount / 16][Pieces][4];
  static ATTN_INLINE int col(int piece) { return piece * 8 + lane_index() % 4 * 2; }
};

// The left operand of a product, in registers as the tensor cores read it.
template <class Element, int RowCount, int ColCount, int WarpCount>
struct RegisterOperand : RowShape<RowCount, WarpCount> {
  using T = Element;
  static constexpr int Cols = ColCount;
  unsigned v[RowCount / WarpCount / 16][(ColCount + 15) / 16][4];
};

template <int R, int C, int W> ATTN_INLINE void clear(Frag<R, C, W> &f) {
#pragma unroll
  for (int m = 0; m < f.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < f.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f.v[m][n][i] = 0;
}

// The left operand of one depth step, 16 columns of P: two pieces of an accumulator already have its layout, so P never
// leaves the registers. The last step may have one piece.
template <class T, int R, int N, int W>
ATTN_INLINE void pack_depth(unsigned (&a)[4], const Frag<R, N, W> &s, int m, int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    a[i] =
        k / 8 + i / 2 < s.Pieces ? pack<T>(s.v[m][k / 8 + i / 2][i % 2 * 2], s.v[m][k / 8 + i / 2][i % 2 * 2 + 1]) : 0;
}

// Multiplies the lane's row i of an accumulator.
template <int R, int C, int W> ATTN_INLINE void scale_row(Frag<R, C, W> &acc, int i, float factor) {
#pragma unroll
  for (int n = 0; n < acc.Pieces; ++n)
    acc.v[i / 2][n][i % 2 * 2] *= factor, acc.v[i / 2][n][i % 2 * 2 + 1] *= factor;
}

} // namespace attn
