// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles from global to shared memory by cp.async: 16 bytes a request, bypassing L1 and registers.
#pragma once
#include "attn/mma/fragment.cuh"

namespace attn {

ATTN_INLINE constexpr int next_power_of_two(int x) {
  int p = 1;
  while (p < x)
    p *= 2;
  return p;
}

// How the threads of a CTA map to the 16 byte units of a tile: a power of two of threads is side by side in a row, so
// that row and column follow from the thread index by two bit operations, and pass p adds p * Step rows. For widths
// that are not a power of two (80, 96, 192 columns) some threads are idle.
template <class Tile> struct ThreadMap {
  static constexpr int Threads = Cta<int(sizeof(typename Tile::T)) * 0>::threads;
  static constexpr int Units = Tile::Cols / 8, Side = next_power_of_two(Units);
  static constexpr int Step = Threads / Side;
  static constexpr int Passes = (Tile::Rows + Step - 1) / Step;
  static_assert(Threads % Side == 0);
  int row = threadIdx.x / Side, unit = threadIdx.x % Side;
  // Does pass p have a unit for this thread? Folds to true for the usual widths.
  ATTN_INLINE bool has(int p) const {
    return (Units == Side || unit < Units) && (Tile::Rows % Step == 0 || row + p * Step < Tile::Rows);
  }
};

// The first row of a tile that is copied; those before it become 0.
struct FirstRow {
  int number;
};

// Row r of the tile is at src + offset_of(stride, r), with a 64-bit address for each row: for pairs, which only query
// tiles have, for rows too far apart for 32-bit offsets, and for tiles whose first rows are not copied.
template <int Dim, class T, int R, int C, int P, class Stride>
ATTN_INLINE void copy_rows(const Smem<T, R, C, P> &dst, const T *src, Stride stride, int rows, FirstRow first = {0}) {
  const ThreadMap<Smem<T, R, C, P>> thread_map;
#pragma unroll
  for (int p = 0; p < thread_map.Passes; ++p)
    if (thread_map.has(p)) {
      const int r = thread_map.row + p * thread_map.Step;
      const bool live = first.number <= r && r < rows && thread_map.unit < Dim / 8;
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(dst.at(r, thread_map.unit * 8)),
                   "l"(live ? src + offset_of(stride, r) + thread_map.unit * 8 : src), "r"(live ? 16 : 0)
                   : "memory");
    }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Copies rows [0, min(rows, Tile::Rows)) of Dim elements and fills the rest with zeros: a request of size 0 reads
// nothing and writes 16 zero bytes. Memory behind a sequence is therefore never read, and products over the tile need
// no other guard for its rows.
//
// An address is a 64-bit base that all threads share, advanced from pass to pass in uniform registers, plus the
// thread's 32-bit offset. NOTE: offsets span the Step rows of one pass, 256 at most, so strides from 2^23 elements on,
// and negative ones, take copy_rows().
template <int Dim, class T, int R, int C, int P>
ATTN_INLINE void copy_async(const Smem<T, R, C, P> &dst, const T *src, long long stride, int rows) {
  static_assert(Dim % 8 == 0 && Dim <= C && C - Dim < 16);
  const ThreadMap<Smem<T, R, C, P>> thread_map;
  static_assert(ThreadMap<Smem<T, R, C, P>>::Step <= 256);
  if (stride >> 23) {
    copy_rows<Dim>(dst, src, stride, rows);
    return;
  }
  const char *from = (const char *)src;
  const unsigned offset = (thread_map.row * unsigned(stride) + thread_map.unit * 8) * 2;
  const unsigned to = dst.at(thread_map.row, thread_map.unit * 8);
  asm volatile("" : "+r"(rows)); // each copy recomputes its limit, which would take registers across tiles
  const int limit = (Dim == C || thread_map.unit < Dim / 8) ? rows - thread_map.row : 0;
#pragma unroll
  for (int p = 0; p < thread_map.Passes; ++p) {
    if (thread_map.has(p))
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to + p * thread_map.Step * P * 2),
                   "l"(from + offset), "r"(p * thread_map.Step < limit ? 16 : 0)
                   : "memory");
    from += thread_map.Step * stride * 2;
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Dim, class T, int R, int C, int P, int H>
ATTN_INLINE void copy_async(const Smem<T, R, C, P> &dst, const T *src, PairStride<H> stride, int rows) {
  copy_rows<Dim>(dst, src, stride, rows);
}

template <int Dim, class T, int R, int C, int P>
ATTN_INLINE void copy_async(const Smem<T, R, C, P> &dst, const T *src, long long stride, int rows, FirstRow first) {
  copy_rows<Dim>(dst, src, stride, rows, first);
}

// Afterwards all copies have landed and are visible to all threads, and no thread still reads what the next copies
// overwrite.
ATTN_INLINE void wait_copies_and_sync() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

// Moves the sign of a negative scale into Q, so that online_softmax() may take the largest product for the largest
// score and hidden scores stay -inf. Ends with a barrier.
template <class T, int R, int C, int P> ATTN_INLINE void negate(const Smem<T, R, C, P> &Q) {
  const ThreadMap<Smem<T, R, C, P>> thread_map;
#pragma unroll 1
  for (int pass = 0; pass < thread_map.Passes; ++pass)
    if (thread_map.has(pass)) {
      uint4 &x = unit_at(Q.at(thread_map.row + pass * thread_map.Step, thread_map.unit * 8));
      x = {x.x ^ 0x80008000, x.y ^ 0x80008000, x.z ^ 0x80008000, x.w ^ 0x80008000};
    }
  __syncthreads();
}

} // namespace attn
