// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sequences of a packed layout from the segments of all rows, and their query tiles in the order of cost. The CTA
// of the row that finishes last writes them: this is a prefix sum over segments and a sort of tiles.
#pragma once
#include "attn/metadata/write_segments.cuh"
#include "attn/scheduler/queue.cuh"

namespace attn {

// True in the CTA whose row finishes last.
template <class SegmentTable> ATTN_INLINE bool is_last_row(SegmentTable &t, unsigned *queue, int rows) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    t.at.last = atomicAdd(queue, 1) == unsigned(rows - 1);
    if (t.at.last)
      *queue = 0;
    __threadfence();
  }
  __syncthreads();
  return t.at.last;
}

template <class SegmentTable>
ATTN_INLINE void write_sequences(SegmentTable &t, const Tokens &q, const Tokens &kv, unsigned *queue, int rows,
                                 int *cu_q, int *offsets_q, int *cu_kv, int *offsets_kv) {
  constexpr int S = SegmentTable::Segments;
  if (cluster_rank<SegmentTable::Cluster>() != 0)
    return;
  const int row = batch_row_index<SegmentTable::Cluster>(), size = rows * S;
  struct Sequence {
    int length_q, length_kv, at_q, at_kv;
  };
  auto sequence_of = [&](int i) { // of this row; some have no tokens
    const int s = t.order(0, i);
    return s < 0 || t.is_bad(s) ? Sequence{0, 0, 0, 0}
                                : Sequence{t.get(0, kCount, s), t.get(1, kCount, s),
                                           row * q.count + t.get(0, kFirst, s), row * kv.count + t.get(1, kFirst, s)};
  };
  t.at.last = true;
  if (rows > 1) {
    // Each row first stores its sequences at positions with room for the most segments; lengths are stored one entry
    // later, where the prefix sums will be.
    for (int i = threadIdx.x; i < S; i += blockDim.x) {
      const Sequence sequence = sequence_of(i);
      const int place = row * S + i;
      cu_q[place + 1] = sequence.length_q, cu_kv[place + 1] = sequence.length_kv, offsets_q[place] = sequence.at_q,
                   offsets_kv[place] = sequence.at_kv;
    }
    if (!is_last_row(t, queue, rows))
      return;
  }
  int used = 0, sum_q = 0, sum_kv = 0;
  for (int base = 0; base < size; base += blockDim.x) {
    const int i = base + threadIdx.x;
    Sequence sequence = {0, 0, 0, 0};
    if (i < size)
      sequence = rows == 1 ? sequence_of(i)
                           : Sequence{__ldcg(cu_q + i + 1), __ldcg(cu_kv + i + 1), __ldcg(offsets_q + i),
                                      __ldcg(offsets_kv + i)};
    const int x[3] = {sequence.length_q > 0, sequence.length_q, sequence.length_kv};
    int before[3], total[3];
    sums_before(t, x, before, total);
    if (x[0]) {
      const int place = used + before[0];
      offsets_q[place] = sequence.at_q, offsets_kv[place] = sequence.at_kv;
      cu_q[place + 1] = sum_q + before[1] + x[1], cu_kv[place + 1] = sum_kv + before[2] + x[2];
    }
    used += total[0], sum_q += total[1], sum_kv += total[2];
  }
  for (int i = used + threadIdx.x; i <= size; i += blockDim.x) {
    offsets_q[i] = rows * q.count, offsets_kv[i] = rows * kv.count;
    if (i < size)
      cu_q[i + 1] = sum_q, cu_kv[i + 1] = sum_kv;
  }
  if (threadIdx.x == 0)
    cu_q[0] = cu_kv[0] = 0;
}

// A stable counting sort into 256 buckets: each warp has a contiguous part of the tiles and first counts how many of
// them go into each bucket.
template <int QTile, class SegmentTable, class Cost>
ATTN_INLINE void list_query_tiles(SegmentTable &t, const Tokens &q, const Tokens &kv, int rows, const int *cu_q,
                                  const int *offsets_q, const int *cu_kv, int *list, int *list_length, Cost cost) {
  if (!t.at.last)
    return;
  auto &counts = t.at.sort.counts;
  auto &begins = t.at.sort.begins;
  const int sequences = rows * SegmentTable::Segments, total = rows * q.count, slots = total / QTile + sequences + 2,
            warps = blockDim.x / 32;
  const int each = (slots + warps - 1) / warps, from = warp_index() * each, to = min(from + each, slots);
  const long long longest = max(kv.count, 1);
  auto bucket_of = [&](int slot) { // -1: nothing to write
    int low = -1, high = sequences + 1;
    auto bound = [&](int b) { return b < 0 ? 0 : b > sequences ? total : offsets_q[b]; };
    while (high - low > 1) {
      const int b = low + (high - low) / 2;
      (bound(b) / QTile + b + 1 <= slot ? low : high) = b;
    }
    const int b = low, q0 = (slot - (bound(b) / QTile + b + 1)) * QTile;
    if (bound(b + 1) - bound(b) - q0 <= 0)
      return -1;
    const int len_q = b >= 0 && b < sequences ? cu_q[b + 1] - cu_q[b] : 0;
    if (len_q <= q0)
      return kBuckets - 1;
    const long long c = cost(len_q, cu_kv[b + 1] - cu_kv[b]);
    return int(kBuckets - 1 - min(max((c * (kBuckets - 1) + longest - 1) / longest, 0ll), kBuckets - 1ll));
  };
  for (int i = threadIdx.x; i < warps * kBuckets; i += blockDim.x)
    counts[0][i] = 0;
  __syncthreads();
  for (int pass = 0; pass < 2; ++pass) {
    for (int base = from; base < to; base += 32) {
      const int i = base + lane_index(), slot = slots - 1 - i, bucket = i < to ? bucket_of(slot) : -1;
      const unsigned same = __match_any_sync(~0u, bucket);
      int *const count = &counts[warp_index()][max(bucket, 0)];
      const int place = *count + __popc(same & ((1u << lane_index()) - 1));
      if (pass && bucket >= 0)
        list[begins[bucket] + place] = slot;
      __syncwarp();
      if (bucket >= 0 && same >> lane_index() == 1)
        *count = place + 1;
      __syncwarp();
    }
    __syncthreads();
    if (pass)
      break;
    int x[1] = {0}, before[1], sum[1];
    if (threadIdx.x < kBuckets)
      for (int w = 0; w < warps; ++w) {
        const int n = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = x[0], x[0] += n;
      }
    sums_before(t, x, before, sum);
    if (threadIdx.x < kBuckets)
      begins[threadIdx.x] = before[0];
    if (threadIdx.x == 0)
      *list_length = sum[0];
    __syncthreads();
  }
}

} // namespace attn
