// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work-tile mailbox of persistent warp-specialized kernels: it passes each work tile from the producer to the
// consumers, its index and scalars derived from it, through two slots of shared memory. The producer loads a tile's
// operands while consumers are in the epilogue of the tile before.
#pragma once
#include "attn/copy/ring.cuh"
#include "attn/scheduler/grid_dependency.cuh"
#include "attn/scheduler/roles.cuh"

namespace attn {

template <int WordCount> struct WorkTile {
  int words[WordCount];
};
// A cursor of two slots that toggles its index, without the branch in CursorOf::step(), which would make the compiler
// arrange the loops of kernels differently. A cursor that counts steps needs no change.
template <class Plain> struct Toggled : Plain {
  ATTN_INLINE void step() { this->index ^= 1, this->phase ^= this->index == 0; }
};
template <> struct Toggled<CursorOf<2, true>> : CursorOf<2, true> {};
template <int WordCount> struct Mailbox {
  static constexpr int Words = (WordCount + 3) / 4 * 4;
  // Arrivals with which a warp releases a slot: one of each lane with a dQ MMA warpgroup, as for row statistics, which
  // the race checker of compute-sanitizer follows; otherwise one of each warp (with one of each lane the compiler
  // arranges a causal forward pass differently, and it is 5 to 10 % slower).
  static constexpr int Arrivals = dq_mma_warps<Cta<0 * WordCount>>(0) > 0 ? 32 : 1;
  unsigned barriers;                         // full[2], empty[2], words[2][Words]
  Toggled<Cursor<2 + 0 * WordCount>> cursor; // 0 * WordCount: as for Cta
  ATTN_INLINE explicit Mailbox(int at) { barriers = unsigned(__cvta_generic_to_shared(shared_memory)) + at; }
  ATTN_INLINE unsigned parity() const { return cursor.parity(); }
  ATTN_INLINE unsigned full() const { return barriers + cursor.slot() * 8; }
  ATTN_INLINE unsigned empty() const { return barriers + 16 + cursor.slot() * 8; }
  ATTN_INLINE unsigned words() const { return barriers + 32 + cursor.slot() * Words * 4; }
  ATTN_INLINE void step() { cursor.step(); }
  ATTN_INLINE void init(int consumers, int others) const {
    for (int i = 0; i < 2; ++i)
      barrier_init(barriers + i * 8, 1), barrier_init(barriers + 16 + i * 8, (consumers + others) * Arrivals);
  }
};

// Producer.
template <int N, class... Word> ATTN_INLINE void publish_work(Mailbox<N> &mailbox, Word... words) {
  static_assert(sizeof...(Word) <= N);
  if (lane_index() == 0) {
    barrier_wait(mailbox.empty(), mailbox.parity() ^ 1);
    unsigned at = mailbox.words();
    ((*(volatile int *)__cvta_shared_to_generic(at) = words, at += 4), ...);
    barrier_arrive(mailbox.full());
  }
  mailbox.step();
}
template <int N> ATTN_INLINE void publish_end(Mailbox<N> &mailbox) { publish_work(mailbox, -1); }
template <int N> ATTN_INLINE void release_work(Mailbox<N> &mailbox) {
  if constexpr (Mailbox<N>::Arrivals == 1)
    __syncwarp();
  if (Mailbox<N>::Arrivals == 32 || lane_index() == 0)
    barrier_arrive(mailbox.empty());
  mailbox.step();
}
// Consumer: reads the next work tile; false if there is none left. With ReleasedLater the slot stays valid until
// release_work().
template <bool ReleasedLater = false, int N>
ATTN_INLINE bool receive_work(Mailbox<N> &mailbox, WorkTile<N> &work_tile) {
  barrier_wait(mailbox.full(), mailbox.parity());
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    int x[4];
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(mailbox.words() + i * 4));
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (i + j < N)
        work_tile.words[i + j] = x[j];
  }
  if (!ReleasedLater)
    release_work(mailbox);
  return work_tile.words[0] >= 0;
}
template <int N> ATTN_INLINE int reload_work(const Mailbox<N> &mailbox, int word) {
  int x;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(mailbox.words() + word * 4));
  return x;
}

// Before roles diverge: initializes the mbarriers and makes them visible to all threads and to TMA. Others: the number
// of warps besides the consumers that receive work tiles.
template <int Others = 0, class... Place> ATTN_INLINE void begin_roles(const Place &...places) {
  if (threadIdx.x == 0) {
    (places.init(consumer_warps(), Others), ...);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  grid_dependency_sync();
  __syncthreads();
}

} // namespace attn
