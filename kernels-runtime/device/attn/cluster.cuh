// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks that run at the same time and read each other's shared memory (PTX ISA: mapa, barrier.cluster). A cluster of
// one block needs no Hopper.
#pragma once
#include "attn/fragment.cuh"

#define ATTN_CLUSTER_KERNEL(name, block_threads, blocks_per_sm, blocks_per_cluster)                                    \
  template <> struct attn::Block<0> {                                                                                  \
    static constexpr int threads = block_threads;                                                                      \
  };                                                                                                                   \
  extern "C" __global__ void __cluster_dims__(blocks_per_cluster) __launch_bounds__(block_threads, blocks_per_sm) name

namespace attn {

// A cluster of N blocks has one row of the batch.
template <int N> ATTN_INLINE int row_index() { return blockIdx.x / N; }
template <int N> ATTN_INLINE int cluster_rank() { return N == 1 ? 0 : int(blockIdx.x % N); }

// What lies at this address of shared memory in another block of the cluster.
template <int N, class T> ATTN_INLINE T *of_block(T *place, int rank) {
  if constexpr (N > 1)
    asm("mapa.u64 %0, %0, %1;" : "+l"(place) : "r"(rank));
  return place;
}

// The two halves of cluster_sync(): what was written before the first is visible to all behind the second. A block
// whose writes nobody is to see can `arrive` relaxed, which waits for none of them, nor for its loads.
template <bool Relaxed = false> ATTN_INLINE void cluster_arrive() {
  if constexpr (Relaxed)
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  else
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
ATTN_INLINE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// All threads of the cluster; what they wrote before is visible to all of them behind it.
template <int N> ATTN_INLINE void cluster_sync() {
  if constexpr (N > 1)
    cluster_arrive(), cluster_wait();
  else
    __syncthreads();
}

} // namespace attn
