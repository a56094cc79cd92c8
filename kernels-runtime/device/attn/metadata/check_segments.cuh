// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that a mask over positions equals the mask of lengths and offsets.
#pragma once
#include "attn/metadata/segment_table.cuh"

namespace attn {

// A check is about all pairs of a segment: key <= query + diagonal exactly where the positions say so. In an even row,
// the positions have a diagonal, too, which is compared. In other rows it suffices to compare for each query the last
// key before the diagonal and the first one behind it, and for each key likewise: positions then rise along the
// diagonal, and all other pairs follow. If the diagonal is outside the segment, its extreme positions decide.
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

} // namespace attn
