// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments in the order of their first tokens.
#pragma once
#include "attn/metadata/segment_sums.cuh"

namespace attn {

// Sorts the segments of both sides by their first tokens, which is usually the order of ids; -1 fills the rest. Thread
// t may read the entries t, t + blockDim.x, ... without a barrier.
template <class SegmentTable> ATTN_INLINE void sort_segments(SegmentTable &t) {
  constexpr int S = SegmentTable::Segments;
  auto taken = [&](int side, int s) { return s < S && t.get(side, kCount, s) > 0; };
  bool in_order = true; // ids from 1 on without gaps
#pragma unroll
  for (int side = 0; side < 2; ++side)
    for (int s = threadIdx.x; s + 1 < S; s += blockDim.x)
      if (taken(side, s + 1))
        in_order &= taken(side, s) && t.get(side, kFirst, s) <= t.get(side, kFirst, s + 1);
  if (__syncthreads_and(in_order)) {
#pragma unroll
    for (int side = 0; side < 2; ++side)
      for (int s = threadIdx.x; s < S; s += blockDim.x)
        t.order(side, s) = taken(side, s) ? s : -1;
    return;
  }
  int counts[2] = {0, 0};
  for (int base = 0; base < S; base += blockDim.x) {
    const int s = base + threadIdx.x;
    const bool has[2] = {taken(0, s), taken(1, s)};
    int before[2], total[2];
    counts_before(t, has, before, total);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      if (has[side])
        t.order(side, counts[side] + before[side]) = s;
      counts[side] += total[side];
    }
  }
  __syncthreads();
  bool unsorted = false;
#pragma unroll
  for (int side = 0; side < 2; ++side)
    for (int i = threadIdx.x; i < S; i += blockDim.x) {
      if (i >= counts[side])
        t.order(side, i) = -1;
      if (i + 1 < counts[side])
        unsorted |= t.get(side, kFirst, t.order(side, i)) > t.get(side, kFirst, t.order(side, i + 1));
    }
  if (!__syncthreads_or(unsorted))
    return;
#pragma unroll 1
  for (int i = threadIdx.x; i < 2 * S; i += blockDim.x) {
    const int side = i / S, s = i % S;
    if (t.get(side, kCount, s) == 0)
      continue;
    int before = 0;
#pragma unroll 1
    for (int other = 0; other < S; ++other)
      before += t.get(side, kCount, other) > 0 && t.get(side, kFirst, other) < t.get(side, kFirst, s);
    t.order(side, before) = s;
  }
  __syncthreads();
}

template <class SegmentTable>
ATTN_INLINE void write_segments(SegmentTable &t, int *seqlens_q, int *seqlens_kv, int *offsets_q, int *offsets_kv,
                                int *status) {
  constexpr int S = SegmentTable::Segments;
  if (cluster_rank<SegmentTable::Cluster>() != 0)
    return;
  const long long row = batch_row_index<SegmentTable::Cluster>();
  sort_segments(t);
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    int *const lengths = (side ? seqlens_kv : seqlens_q) + row * S, *const offsets =
                                                                        (side ? offsets_kv : offsets_q) + row * (S + 1);
    for (int i = threadIdx.x; i <= S; i += blockDim.x)
      if (t.is_even)
        offsets[i] = i < S && t.order(side, i) >= 0 ? t.get(side, kFirst, t.order(side, i)) : -1;
      else
        offsets[i] = i < t.at.runs[side] ? t.at.starts[side][i] : -1;
    for (int s = threadIdx.x; s < S; s += blockDim.x)
      lengths[s] = t.get(side, kCount, s);
  }
  if (threadIdx.x == 0)
    status[row] = t.at.status;
}

} // namespace attn
