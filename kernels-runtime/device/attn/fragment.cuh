// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places: where a tile lives. Verbs take places by reference, destination first; nothing returns a tile.
//
// A fragment is dealt to the threads the way mma.m16n8k16 leaves its accumulator. Warp w owns the Rows / Warps rows
// from w * Rows / Warps on, in blocks of 16; in an 8 column piece of such a block, lane 4g + t holds
//
//            columns 2t, 2t+1
//   row g       v[0] v[1]          so the four lanes of a "quad" share their rows, two rows a block,
//   row g + 8   v[2] v[3]          and a row's reduction ends with two exchanges inside the quad.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

// A tile in dynamic shared memory, at a byte offset. Pitch is the distance of two rows in elements; an odd multiple of
// 16 bytes lets eight rows' 16 byte pieces (what ldmatrix reads at a time) fall into different banks, and keeps every
// address "one register + constant", which a swizzle would not: with 128 accumulators a thread, registers are what we
// are short of.
template <class Element, int RowCount, int ColCount, int PitchElements> struct Smem {
  using T = Element;
  static constexpr int Rows = RowCount, Cols = ColCount, Pitch = PitchElements;
  static_assert(Cols % 16 == 0 && Pitch % 8 == 0 && Pitch >= Cols);
  unsigned address; // in the shared window: 32 bits

  ATTN_INLINE explicit Smem(int offset) : address(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  ATTN_INLINE unsigned at(int row, int col) const { return address + (row * Pitch + col) * 2; }
};

ATTN_INLINE unsigned &word_at(unsigned address) { return *(unsigned *)__cvta_shared_to_generic(address); }
ATTN_INLINE uint4 &chunk_at(unsigned address) { return *(uint4 *)__cvta_shared_to_generic(address); }

// The shape every register place has in common: Blocks 16 row blocks a warp, two rows a block and lane.
template <int RowCount, int WarpCount> struct RowShape {
  static constexpr int Rows = RowCount, Warps = WarpCount, Blocks = RowCount / WarpCount / 16;
  static_assert(Blocks >= 1 && Rows == Blocks * Warps * 16);
  // The lane's row number i = 2 * block + half.
  static ATTN_INLINE int row(int i) { return warp_index() * (Blocks * 16) + i * 8 + lane_index() / 4; }
  // The same, worked out where it is wanted.
  static ATTN_INLINE int row_here(int i) {
    const unsigned thread = thread_here();
    return thread / 32 * (Blocks * 16) + i * 8 + thread % 32 / 4;
  }
};

// fp32 accumulators.
template <int RowCount, int ColCount, int WarpCount> struct Frag : RowShape<RowCount, WarpCount> {
  static constexpr int Cols = ColCount, Pieces = ColCount / 8;
  float v[RowCount / WarpCount / 16][Pieces][4];
  static ATTN_INLINE int col(int piece) { return piece * 8 + lane_index() % 4 * 2; }
};

// The left operand of a product, held in registers as the matrix units read it.
template <class Element, int RowCount, int ColCount, int WarpCount> struct Held : RowShape<RowCount, WarpCount> {
  using T = Element;
  static constexpr int Cols = ColCount;
  unsigned v[RowCount / WarpCount / 16][(ColCount + 15) / 16][4];
};

// Per query row: what probabilities are relative to (softmax.cuh) and their sum so far. The sum is the lane's own share
// until normalize() adds the quad's four: rescaling treats all shares alike. As no thread has more than 64 columns of a
// row, some probability is above 4 then.
constexpr float kMuchPower = 8, kMuch = 256;
constexpr int kMuchBits = 0x43800000; // of kMuch
template <int RowCount, int WarpCount> struct Rows : RowShape<RowCount, WarpCount> {
  float max[RowCount / WarpCount / 8], sum[RowCount / WarpCount / 8];
  float shrink[RowCount / WarpCount / 8]; // what the last step multiplied the sums by, if any row grew
  bool grew;
  // What a lane's part of a row's probabilities may add up to before maxima are looked at: kMuch. Where rows have to be
  // looked at in every tile, a NaN that has a bit for each such row: one comparison finds both, and there is one
  // register.
  float much;
  ATTN_INLINE int look() const { return __float_as_int(much) & 0xff; }
  ATTN_INLINE void set_look(int rows) { much = __int_as_float(rows ? 0x7fc00000 | rows : kMuchBits); }
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

// The left operand of one depth step, 16 columns of P: two 8 column pieces of an accumulator are it as they stand. P
// never leaves the registers. Of the last step's there may be one piece.
template <class T, int R, int N, int W>
ATTN_INLINE void pack_depth(unsigned (&a)[4], const Frag<R, N, W> &s, int m, int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    a[i] =
        k / 8 + i / 2 < s.Pieces ? pack<T>(s.v[m][k / 8 + i / 2][i % 2 * 2], s.v[m][k / 8 + i / 2][i % 2 * 2 + 1]) : 0;
}

template <int R, int W> ATTN_INLINE void clear(Rows<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * row.Blocks; ++i)
    row.max[i] = -kLargest, row.sum[i] = 0;
  row.set_look(0);
}

} // namespace attn
