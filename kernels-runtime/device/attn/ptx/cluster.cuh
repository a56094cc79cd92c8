// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thread block clusters: CTAs that run at the same time and access each other's shared memory (PTX ISA: mapa,
// barrier.cluster). A cluster of one CTA does not need Hopper.
#pragma once
#include "attn/ptx/prelude.cuh"

#define ATTN_CLUSTER_KERNEL(name, cta_threads, ctas_per_sm, ctas_per_cluster)                                          \
  template <> struct attn::Cta<0> {                                                                                    \
    static constexpr int threads = cta_threads;                                                                        \
  };                                                                                                                   \
  extern "C" __global__ void __cluster_dims__(ctas_per_cluster) __launch_bounds__(cta_threads, ctas_per_sm) name

namespace attn {

// The batch row of this CTA's cluster, and the CTA's rank in the cluster of N CTAs.
template <int N> ATTN_INLINE int batch_row_index() { return blockIdx.x / N; }
template <int N> ATTN_INLINE int cluster_rank() { return N == 1 ? 0 : int(blockIdx.x % N); }

// The address of `place` in the shared memory of another CTA of the cluster.
template <int N, class T> ATTN_INLINE T *map_shared_rank(T *place, int rank) {
  if constexpr (N > 1)
    asm("mapa.u64 %0, %0, %1;" : "+l"(place) : "r"(rank));
  return place;
}

// The two halves of cluster_sync(): writes before the arrive are visible to all CTAs after the wait. A CTA whose writes
// no other CTA reads can arrive relaxed, which waits neither for its writes nor for its loads.
template <bool Relaxed = false> ATTN_INLINE void cluster_arrive() {
  if constexpr (Relaxed)
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  else
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
ATTN_INLINE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// Synchronizes all threads of the cluster; their earlier writes are visible to all of them afterwards.
template <int N> ATTN_INLINE void cluster_sync() {
  if constexpr (N > 1)
    cluster_arrive(), cluster_wait();
  else
    __syncthreads();
}

} // namespace attn
