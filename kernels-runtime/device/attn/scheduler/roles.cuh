// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles of warp-specialized kernels: which warps have them, their registers, and ping-pong between consumers.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// Warpgroups are, in this order: consumers; with ATTN_DQ_MMA_KERNEL, the dQ MMA warpgroup; and last the producer's,
// whose first warp is the producer and whose next two, where dQ is accumulated, are the dQ store warps.
#define ATTN_DQ_MMA_KERNEL(name, cta_threads, ctas_per_sm)                                                             \
  template <> struct attn::Cta<0> {                                                                                    \
    static constexpr int threads = cta_threads, dq_mma_warps = 4;                                                      \
  };                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(cta_threads, ctas_per_sm) name
// The number of dQ MMA warps: that of the kernel's Cta, or 0 if it defines none.
template <class Cta> ATTN_INLINE constexpr auto dq_mma_warps(int) -> decltype(Cta::dq_mma_warps) {
  return Cta::dq_mma_warps;
}
template <class Cta> ATTN_INLINE constexpr int dq_mma_warps(long) { return 0; }
template <int Kernel = 0> ATTN_INLINE constexpr int producer_warp() { return Cta<Kernel>::threads / 32 - 4; }
template <int Kernel = 0> ATTN_INLINE constexpr int consumer_warps() {
  return producer_warp<Kernel>() - dq_mma_warps<Cta<Kernel>>(0);
}
template <int Kernel = 0> ATTN_INLINE bool is_consumer() { return warp_index() < consumer_warps<Kernel>(); }
// Is a warp that is no consumer a dQ MMA warp? Kernels test for consumers first, and for idle warps
// (is_after_producer()) after all other roles: a test of both ends would make the compiler arrange kernels differently.
template <int Kernel = 0> ATTN_INLINE bool is_dq_mma() { return warp_index() < producer_warp<Kernel>(); }

ATTN_INLINE int warpgroup_index() { return uniform(threadIdx.x / 128); }

// The index of this warp in the producer's warpgroup; below 0 for other warps. With a dQ MMA warpgroup it is
// warp-uniform, so that each role's ring state is in uniform registers, since others are scarce. (In other kernels the
// compiler would arrange loops differently.)
template <int Kernel = 0> ATTN_INLINE int role_index() {
  return (dq_mma_warps<Cta<Kernel>>(0) ? uniform(warp_index()) : warp_index()) - producer_warp<Kernel>();
}
template <int Kernel = 0> ATTN_INLINE int dq_store_index() { return role_index<Kernel>() - 1; } // 0 or 1
template <int Kernel = 0> ATTN_INLINE bool is_dq_store() {
  return role_index<Kernel>() == 1 || role_index<Kernel>() == 2;
}
template <int Kernel = 0> ATTN_INLINE bool is_after_producer() { return role_index<Kernel>() > 0; }

// Moves registers from the producer's warpgroup to the consumers.
template <int Count> ATTN_INLINE void dealloc_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count> ATTN_INLINE void alloc_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

// Ping-pong between consumer warpgroups: one issues products while another computes exponentials. Warpgroup w waits at
// the named barrier 4 + w until the warpgroup before it has arrived there; ping_pong_init() lets the first one pass
// once.
template <int Kernel = 0> ATTN_INLINE void ping_pong_arrive() {
  const int next = warpgroup_index() + 1;
  asm volatile("bar.arrive %0, 256;" ::"r"(next == consumer_warps<Kernel>() / 4 ? 4 : 4 + next) : "memory");
}
ATTN_INLINE void ping_pong_wait() { asm volatile("bar.sync %0, 256;" ::"r"(4 + warpgroup_index()) : "memory"); }
template <int Kernel = 0> ATTN_INLINE void ping_pong_init() {
  if (warpgroup_index() == consumer_warps<Kernel>() / 4 - 1)
    ping_pong_arrive();
}

} // namespace attn
