// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rings of row statistics, which the producer fills by bulk copies.
#pragma once
#include "attn/backward/row_statistics.cuh"
#include "attn/copy/ring.cuh"

namespace attn {

template <int Rows, int StageCount> using RowStatisticsRing = RingBase<RowStatistics<Rows>, StageCount>;

// Producer, as producer_load().
template <int N, int S>
ATTN_INLINE void producer_load_row_statistics(RowStatisticsRing<N, S> &ring, const float *from, long long pitch) {
  if (lane_index() == 0) {
    barrier_wait(ring.empty(), ring.parity() ^ 1);
    barrier_expect(ring.full(), RowStatistics<N>::Bytes);
#pragma unroll
    for (int kind = 0; kind < 2; ++kind)
      bulk_load<N * 4>(ring.tile().address + kind * N * 4, from + kind * pitch, ring.full());
  }
  ring.step();
}

} // namespace attn
