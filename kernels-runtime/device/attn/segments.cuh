// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments from the ids and positions of tokens. A cluster of blocks has a row of the batch and
// each block a part of its tokens; what they know of segments is added up in shared memory of the first block, which
// does the rest; only maps of ids are written by all.
//
// Where each segment of both sides is one run of tokens whose positions rise by the same step on both, one look at the
// tokens is enough: which of them see something, and whether that is the mask of lengths and offsets, is then
// arithmetic on a segment's first token, count, lowest position and step. Rows that have another segment are looked at
// again, by the first block alone: they are rare, and most of them are mistakes.
//
// All arithmetic is on integers whose order does not matter (counts, minima, maxima) or whose order is that of tokens,
// so results do not depend on how blocks and warps take turns.
#pragma once
#include "attn/count.cuh"

namespace attn {

// From here on the first block of a cluster is on its own. Of an even row its table is of what remains of each segment
// afterwards; of others it is empty. A segment has the same thread at each step until they are sorted, so even rows
// need no barrier between steps.
template <bool Whole, class Table, class Bound>
ATTN_INLINE void bound_segments(Table &t, const Tokens &q, Bound bound) {
  if (cluster_rank<Table::Cluster>() != 0)
    return;
  // How many steps it takes to go so far, rounded down.
  auto steps = [](unsigned way, unsigned step) { return int(step <= 1 ? way : way / step); };
  bool uneven = false;
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    Bounds b = {kMost, kLeast, 0}; // nobody
    int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    const bool whole = t.whole(0, s) && t.whole(1, s);
    if (!t.meets(s)) {
      n = m = 0;
    } else {
      const bool even = whole && (!q.positions || t.even(s));
      uneven |= !even;
      if (Whole && !whole) {
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

// Of N numbers, sums over the block: `before` has those of the warp's threads before, `sum` the warp's.
template <int N, class Table>
ATTN_INLINE void join_warps(Table &t, const int (&sum)[N], int (&before)[N], int (&total)[N]) {
  auto &totals = t.at.totals[t.sums++ & 1]; // the other one may still be read
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
// Of each of N numbers the sum of the threads before, and the total.
template <int N, class Table>
ATTN_INLINE void sums_before(Table &t, const int (&x)[N], int (&before)[N], int (&total)[N]) {
  int sum[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    sum[k] = sum_up_to_lane(x[k]);
    before[k] = sum[k] - x[k];
  }
  join_warps(t, sum, before, total);
}
template <int N, class Table>
ATTN_INLINE void counts_before(Table &t, const bool (&x)[N], int (&before)[N], int (&total)[N]) {
  int sum[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const unsigned votes = __ballot_sync(~0u, x[k]);
    before[k] = __popc(votes & ((1u << lane_index()) - 1)), sum[k] = __popc(votes);
  }
  join_warps(t, sum, before, total);
}

// Keeps starts of runs in the order of tokens: `has` of up to four of a thread's.
template <class Table> ATTN_INLINE void append_starts(Table &t, int side, int &runs, int at, const bool (&has)[4]) {
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
      if (run <= Table::Segments)
        t.at.starts[side][run] = at + i;
      ++run;
    }
  __syncthreads();
}

// The id of a token that is selected, or 0.
template <class Table> ATTN_INLINE int selected_id(Table &t, int side, const Tokens &tokens, int at, int &status) {
  if (at < 0 || at >= tokens.count)
    return 0;
  const int position = tokens.positions ? tokens.positions[at] : 0,
            id = checked_id(t, tokens.ids[at], position, status);
  return id && is_within(t, side, id, position) ? id : 0;
}

template <class Table> ATTN_INLINE void select_side(Table &t, int side, const Tokens &tokens) {
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

// A block's part of a side's tokens, in multiples of four.
struct Part {
  int begin, end;
};
template <class Table> ATTN_INLINE Part part_of(const Table &, const Tokens &tokens) {
  const int each = ((tokens.count + Table::Cluster - 1) / Table::Cluster + 3) / 4 * 4;
  const int begin = min(cluster_rank<Table::Cluster>() * each, tokens.count);
  return {begin, min(begin + each, tokens.count)};
}

// Writes the ids of selected tokens: by all blocks, which have the first one's bounds.
template <class Table>
ATTN_INLINE void map_segments(Table &t, const Tokens &q, const Tokens &kv, int *ids_q, int *ids_kv) {
  constexpr int S = Table::Segments;
  cluster_sync<Table::Cluster>();
  if (cluster_rank<Table::Cluster>() != 0)
    for (int i = threadIdx.x; i < 2 * S; i += blockDim.x)
      t.at.least[i] = *of_block<Table::Cluster>(t.at.least + i, 0);
  cluster_sync<Table::Cluster>();
  int status = 0;
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
    const Tokens tokens = side_of(side, q, kv);
    const Part part = part_of(t, tokens);
    int *const to = (side ? ids_kv : ids_q) + (long long)row_index<Table::Cluster>() * tokens.count;
#pragma unroll 1
    for (int at = part.begin + threadIdx.x; at < part.end; at += blockDim.x)
      to[at] = selected_id(t, side, tokens, at, status);
  }
}

template <class Table>
ATTN_INLINE void select_segments(Table &t, const Tokens &q, const Tokens &kv, int *ids_q = nullptr,
                                 int *ids_kv = nullptr) {
  if (ids_q)
    map_segments(t, q, kv, ids_q, ids_kv);
  if (t.is_even || cluster_rank<Table::Cluster>() != 0)
    return;
#pragma unroll 1
  for (int side = 0; side < 2; ++side)
    select_side(t, side, side_of(side, q, kv));
  __syncthreads();
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x)
    if (t.get(0, kCount, s) > 0 && !(t.whole(0, s) && t.whole(1, s)))
      t.flag(s, kSplit);
  __syncthreads();
}

// Claims are about all pairs of a segment. Of an even row the diagonal of positions is a number. Else, where the
// claimed diagonal passes between pairs, it is enough to ask at each query for the last key before it and the first
// behind it, and at each key likewise: positions then rise along the diagonal, and all other pairs follow. Where it
// passes by, extremes say.
template <class Table, class Says>
ATTN_INLINE void check_segments(Table &t, const Tokens &q, const Tokens &kv, Says claims) {
  if (cluster_rank<Table::Cluster>() != 0)
    return;
  if (t.is_even) {
    for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s),
                step = n > 1   ? t.get(0, kLeastStep, s)
                       : m > 1 ? t.get(1, kLeastStep, s)
                               : 1;
      if (n == 0 || m == 0)
        continue;
      for (const auto &c : claims(n, m, t.at.shift[s]).claim) {
        // Positions have their diagonal where x / step is.
        const long long x = (long long)t.get(0, kLow, s) - t.get(1, kLow, s) + c.shift, d = c.diagonal;
        const bool same = d * step <= x && x < (d + 1) * step;
        const bool all = d >= m - 1 && x >= (long long)(m - 1) * step, none = d <= -n && x < (long long)(1 - n) * step;
        if (!same && !all && !none)
          t.flag(s, kPositions);
      }
    }
    return;
  }
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    const int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    if (n == 0 || m == 0 || t.is_bad(s))
      continue;
    for (const auto &c : claims(n, m, t.at.shift[s]).claim)
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
      if (id <= 0 || id > Table::Segments || is_far(position) || !is_within(t, side, id, position) || t.is_bad(s))
        continue;
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s), i = at - t.get(side, kFirst, s);
      const int *other = side ? q.positions + t.get(0, kFirst, s) : kv.positions + t.get(1, kFirst, s);
      bool holds = true;
      for (const auto &c : claims(n, m, t.at.shift[s]).claim) {
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

// The segments of both sides in the order of their first tokens, which is that of ids most of the time; -1 behind the
// last. A thread may ask for the places i = threadIdx.x, threadIdx.x + blockDim.x, ... at once.
template <class Table> ATTN_INLINE void sort_segments(Table &t) {
  constexpr int S = Table::Segments;
  auto taken = [&](int side, int s) { return s < S && t.get(side, kCount, s) > 0; };
  bool tidy = true; // ids from 1 on, none left out
#pragma unroll
  for (int side = 0; side < 2; ++side)
    for (int s = threadIdx.x; s + 1 < S; s += blockDim.x)
      if (taken(side, s + 1))
        tidy &= taken(side, s) && t.get(side, kFirst, s) <= t.get(side, kFirst, s + 1);
  if (__syncthreads_and(tidy)) {
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

template <class Table>
ATTN_INLINE void write_segments(Table &t, int *seqlens_q, int *seqlens_kv, int *offsets_q, int *offsets_kv,
                                int *status) {
  constexpr int S = Table::Segments;
  if (cluster_rank<Table::Cluster>() != 0)
    return;
  const long long row = row_index<Table::Cluster>();
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
