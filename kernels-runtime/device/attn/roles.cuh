// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent warp-specialized kernels: roles, the work-tile mailbox, and the tile scheduler.
#pragma once
#include "attn/queue.cuh"
#include "attn/ring.cuh"

namespace attn {

// The mailbox passes each work tile from the producer to the consumers: its index and scalars derived from it, through
// two slots of shared memory. Loads of a tile overlap with the epilogue of the tile before.
template <int WordCount> struct WorkTile {
  int words[WordCount];
};
// (A different formulation would change the code of other kernels' loops.)
template <class Plain> struct Toggled : Plain {
  ATTN_INLINE void step() { this->at ^= 1, this->odd ^= this->at == 0; }
};
template <> struct Toggled<CursorOf<2, true>> : CursorOf<2, true> {};
template <int WordCount> struct Mailbox {
  static constexpr int Words = (WordCount + 3) / 4 * 4;
  // Arrivals with which a warp releases a slot: with a dQ MMA warpgroup one of each lane, as for row statistics, which
  // the race checker follows; otherwise one of each warp (a causal forward pass is 5 to 10 % slower with one of each
  // lane, because the compiler makes other code).
  static constexpr int Arrivals = dq_mma_warps<Block<0 * WordCount>>(0) > 0 ? 32 : 1;
  unsigned barriers;                         // full[2], empty[2], words[2][Words]
  Toggled<Cursor<2 + 0 * WordCount>> cursor; // template argument depends on the kernel
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

// Programmatic dependent launch: a kernel may start while the preceding kernel in its stream still runs. Here it waits
// until that one is complete and its writes are visible, and allows the next kernel to start. (Kernels of short
// duration lose more by this than they gain.)
ATTN_INLINE void grid_dependency_sync() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
}

// Before roles diverge: initializes the mbarriers and makes them visible to all threads and to TMA. Others: warps
// beside the consumers that receive work tiles.
template <int Others = 0, class... Place> ATTN_INLINE void begin_roles(const Place &...places) {
  if (threadIdx.x == 0) {
    (places.init(consumer_warps(), Others), ...);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  grid_dependency_sync();
  __syncthreads();
}

// With a dQ MMA warpgroup the index is made warp-uniform, so that each role's ring state is in uniform registers, since
// others are scarce. (In other kernels this would change the code of loops.)
template <int Kernel = 0> ATTN_INLINE int role_index() {
  return (dq_mma_warps<Block<Kernel>>(0) ? uniform(warp_index()) : warp_index()) - producer_warp<Kernel>();
}
template <int Kernel = 0> ATTN_INLINE int dq_store_index() { return role_index<Kernel>() - 1; } // of two
template <int Kernel = 0> ATTN_INLINE bool is_dq_store() {
  return role_index<Kernel>() == 1 || role_index<Kernel>() == 2;
}
template <int Kernel = 0> ATTN_INLINE bool is_idle() { return role_index<Kernel>() > 0; }

// Moves registers from the copying warps to the consumers.
template <int Count> ATTN_INLINE void dealloc_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count> ATTN_INLINE void alloc_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

// Ping-pong between consumer warpgroups: one issues products while another computes exponentials. They use the named
// barriers 4, 5, ...: a warpgroup waits at its own barrier until the one before has arrived; the first warpgroup does
// not wait the first time.
template <int Kernel = 0> ATTN_INLINE void ping_pong_arrive() {
  const int next = warpgroup_index() + 1;
  asm volatile("bar.arrive %0, 256;" ::"r"(next == consumer_warps<Kernel>() / 4 ? 4 : 4 + next) : "memory");
}
ATTN_INLINE void ping_pong_wait() { asm volatile("bar.sync %0, 256;" ::"r"(4 + warpgroup_index()) : "memory"); }
template <int Kernel = 0> ATTN_INLINE void ping_pong_init() {
  if (warpgroup_index() == consumer_warps<Kernel>() / 4 - 1)
    ping_pong_arrive();
}

// Takes one of `tickets` numbers; the last one resets the counter to 0, its value before and after a launch.
ATTN_INLINE int fetch_ticket(unsigned *counter, int tickets) {
  const int number = atomicAdd(counter, 1);
  if (number == tickets - 1)
    *counter = 0;
  return number;
}
// The dynamic tile scheduler: a CTA starts with the tile of its own index and then takes the next tile of the grid that
// no CTA has taken. Each CTA requests tiles until none is left, which makes `blocks` requests in all. Without a counter
// the schedule is a static grid stride.
ATTN_INLINE int next_work_tile(unsigned *counter, int block, int blocks) {
  if (lane_index() == 0)
    block = (counter ? fetch_ticket(counter, blocks) : block) + gridDim.x;
  return __shfl_sync(~0u, block, 0);
}
// The same for kernels whose CTAs wait for earlier tiles: the first tile comes from the counter, too, so that all
// earlier tiles are taken by CTAs that are or were resident. (Otherwise other kernels could keep some CTAs of the
// launch from starting for long.) `otherwise`: the tile without a counter.
ATTN_INLINE int work_tile_in_order(unsigned *counter, int otherwise, int blocks) {
  if (lane_index() == 0 && counter)
    otherwise = fetch_ticket(counter, blocks + gridDim.x);
  return __shfl_sync(~0u, otherwise, 0);
}
ATTN_INLINE int first_work_tile_in_order(unsigned *counter, int blocks) {
  return work_tile_in_order(counter, blockIdx.x, blocks);
}
ATTN_INLINE int next_work_tile_in_order(unsigned *counter, int block, int blocks) {
  return work_tile_in_order(counter, block + gridDim.x, blocks);
}

} // namespace attn
