// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tokens of each segment have visible pairs. A row whose segments are all even follows arithmetically from the
// segment table; other rows take a second pass over their tokens.
#pragma once
#include "attn/metadata/segment_sums.cuh"

namespace attn {

// Limits the tokens of each segment by the mask. From here on only the first CTA of a cluster works. For an even row
// its table then holds the tokens of each segment that have visible pairs; for other rows it is cleared. Until segments
// are sorted, the same thread processes a segment in each step, so even rows need no barrier between steps.
template <bool RequireContiguous, class SegmentTable, class Bound>
ATTN_INLINE void bound_segments(SegmentTable &t, const Tokens &q, Bound bound) {
  if (cluster_rank<SegmentTable::Cluster>() != 0)
    return;
  // The number of steps that fit, rounded down.
  auto steps = [](unsigned distance, unsigned step) { return int(step <= 1 ? distance : distance / step); };
  bool uneven = false;
  for (int s = threadIdx.x; s < SegmentTable::Segments; s += blockDim.x) {
    Bounds b = {kMost, kLeast, 0}; // selects no token
    int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    const bool is_contiguous = t.is_contiguous(0, s) && t.is_contiguous(1, s);
    if (!t.on_both_sides(s)) {
      n = m = 0;
    } else {
      const bool even = is_contiguous && (!q.positions || t.even(s));
      uneven |= !even;
      if (RequireContiguous && !is_contiguous) {
        t.flag(s, kSplit);
      } else {
        const int low_q = t.get(0, kLow, s), high_q = t.get(0, kHigh, s), low_kv = t.get(1, kLow, s),
                  high_kv = t.get(1, kHigh, s);
        b = bound(n, low_q, high_q, m, low_kv, high_kv);
        if (even && q.positions) { // queries from the least position on, keys up to the highest
          const unsigned step_q = n > 1 ? t.get(0, kLeastStep, s) : 1, step_kv = m > 1 ? t.get(1, kLeastStep, s) : 1;
          const int before = b.least <= low_q   ? 0
                             : b.least > high_q ? n
                                                : steps(unsigned(b.least - low_q) + step_q - 1, step_q);
          n -= before, m = b.most < low_kv ? 0 : b.most >= high_kv ? m : steps(b.most - low_kv, step_kv) + 1;
          t.get(0, kFirst, s) += before, t.get(0, kLow, s) = low_q + before * int(step_q);
        }
      }
    }
    t.at.least[s] = b.least, t.at.most[s] = b.most, t.at.shift[s] = b.shift;
    t.get(0, kCount, s) = n, t.get(1, kCount, s) = m;
  }
  t.is_even = !__syncthreads_or(uneven);
  if (!t.is_even) {
    t.clear(2);
    __syncthreads();
  }
}

// Appends starts of runs in token order. `has`: which of the four consecutive tokens of each thread start a run.
template <class SegmentTable>
ATTN_INLINE void append_starts(SegmentTable &t, int side, int &runs, int at, const bool (&has)[4]) {
  if (!__syncthreads_or(has[0] | has[1] | has[2] | has[3]))
    return;
  int before[1] = {0}, sum[1] = {0}, total[1];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned votes = __ballot_sync(~0u, has[i]);
    before[0] += __popc(votes & ((1u << lane_index()) - 1)), sum[0] += __popc(votes);
  }
  join_warps(t, sum, before, total);
  int run = runs + before[0];
  runs += total[0];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (has[i]) {
      if (run <= SegmentTable::Segments)
        t.at.starts[side][run] = at + i;
      ++run;
    }
  __syncthreads();
}

// The id of a token if it has visible pairs, else 0.
template <class SegmentTable>
ATTN_INLINE int selected_id(SegmentTable &t, int side, const Tokens &tokens, int at, int &status) {
  if (at < 0 || at >= tokens.count)
    return 0;
  const int position = tokens.positions ? tokens.positions[at] : 0,
            id = checked_id(t, tokens.ids[at], position, status);
  return id && is_within(t, side, id, position) ? id : 0;
}

template <class SegmentTable> ATTN_INLINE void select_side(SegmentTable &t, int side, const Tokens &tokens) {
  int runs = 0, status = 0;
#pragma unroll 1
  for (int base = 0; base < tokens.count; base += 4 * blockDim.x) {
    const int at = base + 4 * threadIdx.x;
    int previous = selected_id(t, side, tokens, at - 1, status);
    bool starts[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int id = selected_id(t, side, tokens, at + i, status);
      starts[i] = id && id != previous;
      previous = id;
      if (!id)
        continue;
      const int position = tokens.positions ? tokens.positions[at + i] : 0;
      atomicAdd(&t.get(side, kCount, id - 1), 1);
      atomicMin(&t.get(side, kFirst, id - 1), at + i), atomicMax(&t.get(side, kLast, id - 1), at + i);
      atomicMin(&t.get(side, kLow, id - 1), position), atomicMax(&t.get(side, kHigh, id - 1), position);
    }
    append_starts(t, side, runs, at, starts);
  }
  if (threadIdx.x == 0)
    t.at.runs[side] = runs;
}

// A CTA's part of one side's tokens, a multiple of four.
struct Part {
  int begin, end;
};
template <class SegmentTable> ATTN_INLINE Part part_of(const SegmentTable &, const Tokens &tokens) {
  const int each = ((tokens.count + SegmentTable::Cluster - 1) / SegmentTable::Cluster + 3) / 4 * 4;
  const int begin = min(cluster_rank<SegmentTable::Cluster>() * each, tokens.count);
  return {begin, min(begin + each, tokens.count)};
}

// Writes the ids of selected tokens. All CTAs take part, with the bounds of the first one.
template <class SegmentTable>
ATTN_INLINE void map_segments(SegmentTable &t, const Tokens &q, const Tokens &kv, int *ids_q, int *ids_kv) {
  constexpr int S = SegmentTable::Segments;
  cluster_sync<SegmentTable::Cluster>();
  if (cluster_rank<SegmentTable::Cluster>() != 0)
    for (int i = threadIdx.x; i < 2 * S; i += blockDim.x)
      t.at.least[i] = *map_shared_rank<SegmentTable::Cluster>(t.at.least + i, 0);
  cluster_sync<SegmentTable::Cluster>();
  int status = 0;
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
    const Tokens tokens = side_of(side, q, kv);
    const Part part = part_of(t, tokens);
    int *const to = (side ? ids_kv : ids_q) + (long long)batch_row_index<SegmentTable::Cluster>() * tokens.count;
#pragma unroll 1
    for (int at = part.begin + threadIdx.x; at < part.end; at += blockDim.x)
      to[at] = selected_id(t, side, tokens, at, status);
  }
}

template <class SegmentTable>
ATTN_INLINE void select_segments(SegmentTable &t, const Tokens &q, const Tokens &kv, int *ids_q = nullptr,
                                 int *ids_kv = nullptr) {
  if (ids_q)
    map_segments(t, q, kv, ids_q, ids_kv);
  if (t.is_even || cluster_rank<SegmentTable::Cluster>() != 0)
    return;
#pragma unroll 1
  for (int side = 0; side < 2; ++side)
    select_side(t, side, side_of(side, q, kv));
  __syncthreads();
  for (int s = threadIdx.x; s < SegmentTable::Segments; s += blockDim.x)
    if (t.get(0, kCount, s) > 0 && !(t.is_contiguous(0, s) && t.is_contiguous(1, s)))
      t.flag(s, kSplit);
  __syncthreads();
}

} // namespace attn
