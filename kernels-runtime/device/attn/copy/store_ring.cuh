// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rings that consumer warps fill from registers: P and dS on their way through shared memory, as operands of products
// that need the rows of all warps.
#pragma once
#include "attn/copy/ring.cuh"
#include "attn/mma/fragment.cuh"

namespace attn {

// Stores the rows of all consumer warps into the next of two slots, and waits for the rows of the others at a named
// barrier. When a warp stores again, all warps have passed that barrier, so the slot of the store before last has been
// read. A tile may have room for the rows of the first warps only, and may have more columns.
template <class T, int R, int C, int Rows, int Cols, int W>
ATTN_INLINE Swizzled<T, R, C> store_and_sync(Ring<T, R, C, 2> &ring, const RegisterOperand<T, Rows, Cols, W> &operand) {
  static_assert(Rows == 16 * W && R <= Rows && R % 16 == 0 && C >= Cols);
  const Swizzled<T, R, C> tile = ring.tile();
  const int lane = lane_index(), row = warp_index() * 16 + lane % 16;
  if (R == Rows || row < R)
#pragma unroll
    for (int k = 0; k < Cols / 16; ++k) {
      const int unit = (k % 4 * 2 + lane / 16) ^ (row % 8);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       tile.address + k / 4 * tile.PanelBytes + row * 128 + unit * 16),
                   "r"(operand.v[0][k][0]), "r"(operand.v[0][k][1]), "r"(operand.v[0][k][2]), "r"(operand.v[0][k][3])
                   : "memory");
    }
  fence_async();
  asm volatile("bar.sync 8, %0;" ::"n"(W * 32) : "memory");
  ring.step();
  return tile;
}

// Byte offset of a lane's first 16 bytes in a tile that producer_store() writes.
ATTN_INLINE int store_offset_of(int warp, int lane) {
  const int row = warp * 16 + lane % 16;
  return row * 128 + (lane / 16 ^ row % 8) * 16;
}

// A ring that all consumer warps fill with their rows for the dQ MMA warpgroup.
template <class T, int R, int C, int S> struct StoreRing : RingBase<Swizzled<T, R, C>, S> {
  unsigned place; // store_offset_of() this lane, in a register: recomputing it takes longer than the store
  ATTN_INLINE StoreRing(int tiles_at, int barriers_at, int place)
      : RingBase<Swizzled<T, R, C>, S>(tiles_at, barriers_at), place(place) {}
  ATTN_INLINE StoreRing(int tiles_at, int barriers_at)
      : StoreRing(tiles_at, barriers_at, optimization_barrier(store_offset_of(warp_index(), lane_index()))) {}
  ATTN_INLINE void init_for(int writers, int readers) const {
    for (int i = 0; i < S; ++i)
      barrier_init(this->barriers + i * 8, writers), barrier_init(this->barriers + (S + i) * 8, readers);
  }
  ATTN_INLINE void init(int consumers, int /*others*/) const { init_for(consumers, 4); }
};
// A ring that the consumer warps both fill and read. producer_store() waits until no warp reads the previous contents,
// consumer_wait() until all warps have committed their rows (a warp whose rows the tile lacks stores nothing and
// commits), and consumer_release() advances the ring. `place` is not opaque here, so several such rings share one.
template <class T, int R, int C, int S> struct ExchangeRing : StoreRing<T, R, C, S> {
  ATTN_INLINE ExchangeRing(int tiles_at, int barriers_at)
      : StoreRing<T, R, C, S>(tiles_at, barriers_at, store_offset_of(warp_index(), lane_index())) {}
  ATTN_INLINE void init(int consumers, int /*others*/) const { this->init_for(consumers, consumers); }
};
// Depth step k (16 columns) of an operand, or of a fragment, converted.
template <class T, int R, int N, int W>
ATTN_INLINE void depth_step_of(unsigned (&x)[4], const RegisterOperand<T, R, N, W> &operand, int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    x[i] = operand.v[0][k][i];
}
template <class T, int R, int N, int W>
ATTN_INLINE void depth_step_of(unsigned (&x)[4], const Frag<R, N, W> &s, int k) {
  pack_depth<T>(x, s, 0, k * 16);
}
// Stores an operand into the rows of a tile from First on, as far as the tile has rows. `at`: the address of this
// lane's first 16 bytes.
template <int First = 0, class T, int R, int C, class Operand>
ATTN_INLINE void store_rows_at(unsigned at, const Swizzled<T, R, C> &, const Operand &operand) {
  static_assert(Operand::Rows == 16 * Operand::Warps && R % 16 == 0 && Operand::Cols <= C);
  if (R >= First + Operand::Rows || First + warp_index() * 16 < R)
#pragma unroll
    for (int k = 0; k < Operand::Cols / 16; ++k) {
      unsigned x[4];
      depth_step_of<T>(x, operand, k);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       (at ^ k % 4 * 32) + k / 4 * Swizzled<T, R, C>::PanelBytes + First * 128),
                   "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                   : "memory");
    }
}
template <int First = 0, class T, int R, int C, int S, class Operand>
ATTN_INLINE void producer_store(const StoreRing<T, R, C, S> &ring, const Operand &operand) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  __syncwarp();
  store_rows_at<First>(ring.tile().address + ring.place, ring.tile(), operand);
}
// Stores zeros: no row of this warp sees a key in this step.
template <class T, int R, int C, int S> ATTN_INLINE void producer_store_zeros(const StoreRing<T, R, C, S> &ring) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  const int thread = reread_thread_index();
  const unsigned at = ring.tile().address + thread / 32 * 2048 + thread % 32 * 16;
#pragma unroll
  for (int i = 0; i < C / 16; ++i)
    asm volatile(
        "st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at + i / 4 * Swizzled<T, R, C>::PanelBytes + i % 4 * 512),
        "r"(0)
        : "memory");
}
// A register operand that is kept in the ring's next slot until the slot is filled: each lane keeps its numbers of 16
// columns in 16 contiguous bytes, within the rows that its warp stores there later.
template <class Element, int R, int C, int W> struct Stash {
  using T = Element;
  unsigned address, v[4];
};
template <int W, class T, int R, int C, int S> ATTN_INLINE Stash<T, R, C, W> stash(const StoreRing<T, R, C, S> &ring) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  const int thread = reread_thread_index();
  return {ring.tile().address + thread / 32 * 2048 + thread % 32 * 16};
}
// Stores over a stash. A kernel with a stash has no register left for the ring's `place`, so the offset is recomputed.
template <class T, int R, int C, int S, int W>
ATTN_INLINE void producer_store(const StoreRing<T, R, C, S> &ring, const RegisterOperand<T, R, C, W> &operand,
                                const Stash<T, R, C, W> &) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  __syncwarp(); // all lanes have read the stash
  const int thread = reread_thread_index();
  store_rows_at(ring.tile().address + store_offset_of(thread / 32, thread % 32), ring.tile(), operand);
}
// Access to a stash, as to a register operand (backward/grad_scores.cuh); pairs are set and read in order.
template <class T, int R, int C, int W> ATTN_INLINE unsigned stash_address(const Stash<T, R, C, W> &a, int k) {
  return a.address + k / 4 * Swizzled<T, R, C>::PanelBytes + k % 4 * 512;
}
template <class T, int R, int C, int W>
ATTN_INLINE void set_pair(Stash<T, R, C, W> &a, int, int k, int i, unsigned pair) {
  a.v[i] = pair;
  if (i == 3)
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(stash_address(a, k)), "r"(a.v[0]), "r"(a.v[1]),
                 "r"(a.v[2]), "r"(a.v[3])
                 : "memory");
}
template <class T, int R, int C, int W> ATTN_INLINE unsigned pair_of(Stash<T, R, C, W> &a, int, int n, int i) {
  if (n % 2 == 0 && i == 0)
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a.v[0]), "=r"(a.v[1]), "=r"(a.v[2]), "=r"(a.v[3])
                 : "r"(stash_address(a, n / 2)));
  return a.v[n % 2 * 2 + i / 2];
}

// Makes the stored rows visible to products, and arrives.
template <class T, int R, int C, int S> ATTN_INLINE void producer_commit(const ExchangeRing<T, R, C, S> &ring) {
  fence_async();
  __syncwarp();
  if (lane_index() == 0)
    barrier_arrive(ring.full());
}
template <class T, int R, int C, int S> ATTN_INLINE void producer_commit(StoreRing<T, R, C, S> &ring) {
  fence_async();
  __syncwarp();
  if (lane_index() == 0)
    barrier_arrive(ring.full());
  ring.step();
}

} // namespace attn
