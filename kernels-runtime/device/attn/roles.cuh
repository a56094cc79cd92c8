// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A persistent block and its roles: who brings tiles, who multiplies, and which query tile comes next.
#pragma once
#include "attn/queue.cuh"
#include "attn/ring.cuh"

namespace attn {

// What the producer tells the consumers of each query tile: its number and the scalars that follow from it, through two
// slots of shared memory. A tile's loads are under way while consumers still write the one before.
template <int WordCount> struct Message {
  int words[WordCount];
};
// (Written otherwise, other kernels' loops become other code.)
template <class Plain> struct Toggled : Plain {
  ATTN_INLINE void step() { this->at ^= 1, this->odd ^= this->at == 0; }
};
template <> struct Toggled<CursorOf<2, true>> : CursorOf<2, true> {};
template <int WordCount> struct Feed {
  static constexpr int Words = (WordCount + 3) / 4 * 4;
  // Who gives a slot back: beside a reducer each lane, as of statistics, which the race checker follows; else one of a
  // warp (a causal forward pass was 5 to 10 % slower with all of them: other code).
  static constexpr int Arrivals = reducer_warps<Block<0 * WordCount>>(0) > 0 ? 32 : 1;
  unsigned barriers;                         // full[2], empty[2], words[2][Words]
  Toggled<Cursor<2 + 0 * WordCount>> cursor; // known where the kernel is
  ATTN_INLINE explicit Feed(int at) { barriers = unsigned(__cvta_generic_to_shared(shared_memory)) + at; }
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
template <int N, class... Word> ATTN_INLINE void send(Feed<N> &feed, Word... words) {
  static_assert(sizeof...(Word) <= N);
  if (lane_index() == 0) {
    barrier_wait(feed.empty(), feed.parity() ^ 1);
    unsigned at = feed.words();
    ((*(volatile int *)__cvta_shared_to_generic(at) = words, at += 4), ...);
    barrier_arrive(feed.full());
  }
  feed.step();
}
template <int N> ATTN_INLINE void send_end(Feed<N> &feed) { send(feed, -1); }
template <int N> ATTN_INLINE void forget(Feed<N> &feed) {
  if constexpr (Feed<N>::Arrivals == 1)
    __syncwarp();
  if (Feed<N>::Arrivals == 32 || lane_index() == 0)
    barrier_arrive(feed.empty());
  feed.step();
}
// Consumer: the next message, or none any more. One that is Held stays where it is until forget().
template <bool Held = false, int N> ATTN_INLINE bool receive(Feed<N> &feed, Message<N> &message) {
  barrier_wait(feed.full(), feed.parity());
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    int x[4];
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(feed.words() + i * 4));
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (i + j < N)
        message.words[i + j] = x[j];
  }
  if (!Held)
    forget(feed);
  return message.words[0] >= 0;
}
template <int N> ATTN_INLINE int recall(const Feed<N> &feed, int word) {
  int x;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(feed.words() + word * 4));
  return x;
}

// A launch may begin before the one ahead of it in its stream is over, as blocks of that one make room: here it waits,
// until all is done and written, before it touches memory. Then the next may begin so. (Blocks of short kernels lose
// more by asking than their launches win.)
ATTN_INLINE void follow() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
}

// Before roles part: barriers get their counts, and everybody sees them, the TMA unit too. Others: warps beside those
// that compute to whom messages go.
template <int Others = 0, class... Place> ATTN_INLINE void begin_roles(const Place &...places) {
  if (threadIdx.x == 0) {
    (places.init(consumer_warps(), Others), ...);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  follow();
  __syncthreads();
}

// Beside a reducer a number that the compiler knows all lanes to have, so that what roles keep of their rings is in
// uniform registers: they have few others. (Other kernels' loops became other code by it.)
template <int Kernel = 0> ATTN_INLINE int role_index() {
  return (reducer_warps<Block<Kernel>>(0) ? uniform(warp_index()) : warp_index()) - producer_warp<Kernel>();
}
template <int Kernel = 0> ATTN_INLINE int adder_index() { return role_index<Kernel>() - 1; } // of two
template <int Kernel = 0> ATTN_INLINE bool is_adder() { return role_index<Kernel>() == 1 || role_index<Kernel>() == 2; }
template <int Kernel = 0> ATTN_INLINE bool is_idle() { return role_index<Kernel>() > 0; }

// Registers from warps that only copy to those that compute.
template <int Count> ATTN_INLINE void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count> ATTN_INLINE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

// Warpgroups begin products in turn: one multiplies while another is at its exponents. Named barriers 4, 5, ...: a
// warpgroup waits at its own until the one before has passed; the first does not wait the first time.
template <int Kernel = 0> ATTN_INLINE void pass_turn() {
  const int next = warpgroup_index() + 1;
  asm volatile("bar.arrive %0, 256;" ::"r"(next == consumer_warps<Kernel>() / 4 ? 4 : 4 + next) : "memory");
}
ATTN_INLINE void take_turn() { asm volatile("bar.sync %0, 256;" ::"r"(4 + warpgroup_index()) : "memory"); }
template <int Kernel = 0> ATTN_INLINE void begin_turns() {
  if (warpgroup_index() == consumer_warps<Kernel>() / 4 - 1)
    pass_turn();
}

// Of `asks` in all; the last one puts the counter back to 0, which it is before a launch and after it.
ATTN_INLINE int draw(unsigned *counter, int asks) {
  const int number = atomicAdd(counter, 1);
  if (number == asks - 1)
    *counter = 0;
  return number;
}
// Tiles are dealt out one by one, in the order of the grid: a block starts with the one of its own number; each further
// one is the next that nobody has yet. Blocks ask until they are told that nothing is left, which is `blocks` times.
// Without a counter tiles are dealt out in turn.
ATTN_INLINE int next_block(unsigned *counter, int block, int blocks) {
  if (lane_index() == 0)
    block = (counter ? draw(counter, blocks) : block) + gridDim.x;
  return __shfl_sync(~0u, block, 0);
}
// The same where blocks wait for tiles before their own: the first one is drawn, too, so that what anybody has is
// behind what others on the chip have or had. (Other kernels may keep some of a launch's blocks from it for long.)
// `otherwise`: without a counter.
ATTN_INLINE int drawn_block(unsigned *counter, int otherwise, int blocks) {
  if (lane_index() == 0 && counter)
    otherwise = draw(counter, blocks + gridDim.x);
  return __shfl_sync(~0u, otherwise, 0);
}
ATTN_INLINE int first_drawn(unsigned *counter, int blocks) { return drawn_block(counter, blockIdx.x, blocks); }
ATTN_INLINE int next_drawn(unsigned *counter, int block, int blocks) {
  return drawn_block(counter, block + gridDim.x, blocks);
}

} // namespace attn
