// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefix sums over the threads of a CTA, for several numbers at once.
#pragma once
#include "attn/metadata/segment_table.cuh"

namespace attn {

// Prefix sums of N numbers over the CTA: on entry `before` has the prefix within the warp and `sum` the warp's sum.
template <int N, class SegmentTable>
ATTN_INLINE void join_warps(SegmentTable &t, const int (&sum)[N], int (&before)[N], int (&total)[N]) {
  auto &totals = t.at.totals[t.sums++ & 1]; // the other buffer may still be read
#pragma unroll
  for (int k = 0; k < N; ++k)
    if (lane_index() == 31)
      totals[k][warp_index()] = sum[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const int of_warp = lane_index() < blockDim.x / 32 ? totals[k][lane_index()] : 0;
    before[k] += __reduce_add_sync(~0u, lane_index() < warp_index() ? of_warp : 0);
    total[k] = __reduce_add_sync(~0u, of_warp);
  }
}
// Exclusive prefix sums of N numbers over the threads, and their totals.
template <int N, class SegmentTable>
ATTN_INLINE void sums_before(SegmentTable &t, const int (&x)[N], int (&before)[N], int (&total)[N]) {
  int sum[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    sum[k] = sum_up_to_lane(x[k]);
    before[k] = sum[k] - x[k];
  }
  join_warps(t, sum, before, total);
}
// The same for numbers that are 0 or 1.
template <int N, class SegmentTable>
ATTN_INLINE void counts_before(SegmentTable &t, const bool (&x)[N], int (&before)[N], int (&total)[N]) {
  int sum[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const unsigned votes = __ballot_sync(~0u, x[k]);
    before[k] = __popc(votes & ((1u << lane_index()) - 1)), sum[k] = __popc(votes);
  }
  join_warps(t, sum, before, total);
}

} // namespace attn
