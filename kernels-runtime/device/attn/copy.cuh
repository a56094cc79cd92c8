// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles from global to shared memory by cp.async: 16 bytes a request, past the L1 cache, no registers in between.
#pragma once
#include "attn/fragment.cuh"

namespace attn {

ATTN_INLINE constexpr int next_power_of_two(int x) {
  int p = 1;
  while (p < x)
    p *= 2;
  return p;
}

// How a block walks over a tile in 16 byte chunks: a power of two of threads side by side in a row, so that thread ->
// (row, column) is two bit operations and pass p only adds p * Step rows. For widths in between (80, 96, 192 columns)
// some threads have nothing to do.
template <class Tile> struct Walk {
  static constexpr int Threads = Block<int(sizeof(typename Tile::T)) * 0>::threads;
  static constexpr int Chunks = Tile::Cols / 8, Side = next_power_of_two(Chunks);
  static constexpr int Step = Threads / Side;
  static constexpr int Passes = (Tile::Rows + Step - 1) / Step;
  static_assert(Threads % Side == 0);
  int row = threadIdx.x / Side, chunk = threadIdx.x % Side;
  // Whether pass p has a chunk for this thread; folds to true for the usual widths.
  ATTN_INLINE bool has(int p) const {
    return (Chunks == Side || chunk < Chunks) && (Tile::Rows % Step == 0 || row + p * Step < Tile::Rows);
  }
};

// Row r of the tile is at src + offset_of(stride, r): an address of 64 bits for each row. Of pairs, which only the
// query tile's rows are, once a tile; and where rows lie too far apart for 32 bits.
template <int Dim, class T, int R, int C, int P, class Stride>
ATTN_INLINE void copy_rows(const Smem<T, R, C, P> &dst, const T *src, Stride stride, int rows) {
  const Walk<Smem<T, R, C, P>> walk;
#pragma unroll
  for (int p = 0; p < walk.Passes; ++p)
    if (walk.has(p)) {
      const int r = walk.row + p * walk.Step;
      const bool live = r < rows && walk.chunk < Dim / 8;
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(dst.at(r, walk.chunk * 8)),
                   "l"(live ? src + offset_of(stride, r) + walk.chunk * 8 : src), "r"(live ? 16 : 0)
                   : "memory");
    }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Rows [0, min(rows, Tile::Rows)) of Dim elements, zeros elsewhere: a request of size 0 reads nothing and writes 16
// zero bytes. What lies behind a sequence is therefore never read, and products over the tile need no second guard for
// its rows.
//
// An address is 64 bits that all threads share, stepped from pass to pass in uniform registers, plus the thread's own
// 32 bits. NOTE: these reach over the Step rows of one pass, 256 at most, so row strides from 2^23 elements on, and
// negative ones, take the other path.
template <int Dim, class T, int R, int C, int P>
ATTN_INLINE void copy_async(const Smem<T, R, C, P> &dst, const T *src, long long stride, int rows) {
  static_assert(Dim % 8 == 0 && Dim <= C && C - Dim < 16);
  const Walk<Smem<T, R, C, P>> walk;
  static_assert(Walk<Smem<T, R, C, P>>::Step <= 256);
  if (stride >> 23) {
    copy_rows<Dim>(dst, src, stride, rows);
    return;
  }
  const char *from = (const char *)src;
  const unsigned offset = (walk.row * unsigned(stride) + walk.chunk * 8) * 2;
  const unsigned to = dst.at(walk.row, walk.chunk * 8);
  asm volatile(""
               : "+r"(rows)); // each copy works out its limits anew: kept from tile to tile they would cost registers
  const int limit = (Dim == C || walk.chunk < Dim / 8) ? rows - walk.row : 0;
#pragma unroll
  for (int p = 0; p < walk.Passes; ++p) {
    if (walk.has(p))
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to + p * walk.Step * P * 2),
                   "l"(from + offset), "r"(p * walk.Step < limit ? 16 : 0)
                   : "memory");
    from += walk.Step * stride * 2;
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// The same of pairs.
template <int Dim, class T, int R, int C, int P, int H>
ATTN_INLINE void copy_async(const Smem<T, R, C, P> &dst, const T *src, PairStride<H> stride, int rows) {
  copy_rows<Dim>(dst, src, stride, rows);
}

// Everybody's copies have landed, everybody sees them, and everybody is done with what the next copies overwrite.
ATTN_INLINE void wait() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

} // namespace attn
