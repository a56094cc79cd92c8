// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments from the ids and positions of tokens. A cluster of CTAs processes one batch row, and
// each CTA a part of its tokens. Their tables are reduced into shared memory of the first CTA, which does the rest;
// only maps of ids are written by all.
//
// An even segment is contiguous on both sides, with positions that rise by the same step. If all segments are even, one
// pass over the tokens suffices: which tokens have visible pairs, and whether the mask equals that of lengths and
// offsets, follows arithmetically from a segment's first token, count, lowest position and step. Rows with other
// segments take a second pass by the first CTA; they are rare, and most of them are errors in the input.
//
// All arithmetic is on integers, and either commutative (counts, minima, maxima) or in token order, so results do not
// depend on the schedule of CTAs and warps.
#pragma once
#include "attn/count_segments.cuh"

namespace attn {

// From here on only the first CTA of a cluster works. For an even row its table then holds what remains of each
// segment; for other rows it is cleared. Until segments are sorted, the same thread processes a segment in each step,
// so even rows need no barrier between steps.
template <bool RequireContiguous, class SegmentTable, class Bound>
ATTN_INLINE void bound_segments(SegmentTable &t, const Tokens &q, Bound bound) {
  if (cluster_rank<SegmentTable::Cluster>() != 0)
    return;
  // The number of steps that fit, rounded down.
  auto steps = [](unsigned way, unsigned step) { return int(step <= 1 ? way : way / step); };
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

// Appends starts of runs in token order; `has` is for four consecutive tokens of each thread.
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

// The id of a token if the token is selected, else 0.
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

// A check is about all pairs of a segment. In an even row the diagonal of positions is a number. In other rows, where
// the diagonal lies between pairs, it suffices to compare for each query the last key before the diagonal and the first
// one after it, and for each key likewise: positions then rise along the diagonal, and all other pairs follow. If the
// diagonal lies outside, the extremes decide.
template <class SegmentTable, class Checks>
ATTN_INLINE void check_segments(SegmentTable &t, const Tokens &q, const Tokens &kv, Checks checks) {
  if (cluster_rank<SegmentTable::Cluster>() != 0)
    return;
  if (t.is_even) {
    for (int s = threadIdx.x; s < SegmentTable::Segments; s += blockDim.x) {
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s),
                step = n > 1   ? t.get(0, kLeastStep, s)
                       : m > 1 ? t.get(1, kLeastStep, s)
                               : 1;
      if (n == 0 || m == 0)
        continue;
      for (const auto &c : checks(n, m, t.at.shift[s]).check) {
        // The diagonal of positions is at x / step.
        const long long x = (long long)t.get(0, kLow, s) - t.get(1, kLow, s) + c.shift, d = c.diagonal;
        const bool same = d * step <= x && x < (d + 1) * step;
        const bool all = d >= m - 1 && x >= (long long)(m - 1) * step, none = d <= -n && x < (long long)(1 - n) * step;
        if (!same && !all && !none)
          t.flag(s, kPositions);
      }
    }
    return;
  }
  for (int s = threadIdx.x; s < SegmentTable::Segments; s += blockDim.x) {
    const int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    if (n == 0 || m == 0 || t.is_bad(s))
      continue;
    for (const auto &c : checks(n, m, t.at.shift[s]).check)
      if ((c.diagonal >= m - 1 && t.get(1, kHigh, s) > (long long)t.get(0, kLow, s) + c.shift) ||
          (c.diagonal <= -n && t.get(1, kLow, s) <= (long long)t.get(0, kHigh, s) + c.shift))
        t.flag(s, kPositions);
  }
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
    const Tokens own = side_of(side, q, kv);
#pragma unroll 1
    for (int at = threadIdx.x; at < own.count; at += blockDim.x) {
      const int id = own.ids[at], s = id - 1;
      const long long position = own.positions[at];
      if (id <= 0 || id > SegmentTable::Segments || is_far(position) || !is_within(t, side, id, position) ||
          t.is_bad(s))
        continue;
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s), i = at - t.get(side, kFirst, s);
      const int *other = side ? q.positions + t.get(0, kFirst, s) : kv.positions + t.get(1, kFirst, s);
      bool holds = true;
      for (const auto &c : checks(n, m, t.at.shift[s]).check) {
        if (c.diagonal >= m - 1 || c.diagonal <= -n)
          continue;
        const int j = side ? i - c.diagonal : i + c.diagonal;
        if (side) {
          if (j <= n - 1)
            holds &= position <= (long long)other[max(j, 0)] + c.shift;
          if (j - 1 >= 0)
            holds &= position > (long long)other[min(j - 1, n - 1)] + c.shift;
        } else {
          if (j >= 0)
            holds &= other[min(j, m - 1)] <= position + c.shift;
          if (j + 1 <= m - 1)
            holds &= other[max(j + 1, 0)] > position + c.shift;
        }
      }
      if (!holds)
        t.flag(s, kPositions);
    }
  }
  __syncthreads();
}

// Sorts the segments of both sides by their first tokens, which is usually the order of ids; -1 fills the rest. Thread
// t may read the entries i = t, t + blockDim.x, ... without a barrier.
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
