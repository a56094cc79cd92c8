// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statistics of query rows in rings, by bulk copies.
#pragma once
#include "attn/backward.cuh"
#include "attn/ring.cuh"

namespace attn {

template <int Rows, int StageCount> using StatisticsRing = Slots<Statistics<Rows>, StageCount>;

// Producer, as fill().
template <int N, int S> ATTN_INLINE void fill_statistics(StatisticsRing<N, S> &ring, const float *from, long long pitch) {
  if (lane_index() == 0) {
    barrier_wait(ring.empty(), ring.parity ^ 1);
    barrier_expect(ring.full(), Statistics<N>::Bytes);
#pragma unroll
    for (int kind = 0; kind < 2; ++kind)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(ring.tile().address + kind * N * 4),
                   "l"(from + kind * pitch), "n"(N * 4), "r"(ring.full())
                   : "memory");
  }
  ring.step();
}

}  // namespace attn
