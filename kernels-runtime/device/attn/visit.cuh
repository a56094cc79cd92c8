// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which key tiles a query tile has to visit, by what arrays hold there. A block is one warp.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

struct EntryRange { int least, largest, whole; };

// Least and largest of entries, without those that hide. Four loads under way at once: a tile has four for each lane.
template <bool Hides> ATTN_INLINE EntryRange entry_range_of(const int *entries, int count, int hidden) {
  int least = 0x7fffffff, largest = -0x7fffffff - 1;
  bool whole = true;
#pragma unroll 4
  for (int i = lane_index(); i < count; i += 32) {
    const int x = entries[i];
    const bool hides = Hides && x == hidden;
    whole &= !hides;
    least = hides ? least : min(least, x);
    largest = hides ? largest : max(largest, x);
  }
  return {__reduce_min_sync(~0u, least), __reduce_max_sync(~0u, largest), __all_sync(~0u, whole)};
}
ATTN_INLINE EntryRange entry_range(const int *entries, int count) { return entry_range_of<false>(entries, count, 0); }
ATTN_INLINE EntryRange entry_range(const int *entries, int count, int hidden) { return entry_range_of<true>(entries, count, hidden); }

ATTN_INLINE void set(int *array, long long index, int value) {
  if (lane_index() == 0) array[index] = value;
}

// May some pair of a tile be visible, and are all?
struct TileTruth { bool some, all; };
struct TileCounts { int full, partial; };

// 128 tiles at a time, four a lane, whose loads are under way together: a warp waits for little else. Of tiles to be tested, the first has the last
// entry: as the walk counts them behind the full ones, both ascend.
template <class F> ATTN_INLINE TileCounts select_tiles(int *list, int capacity, int full, int partial, int begin, int end, F truth) {
  constexpr int Own = 4;
  const unsigned before = (1u << lane_index()) - 1;
  for (int first = begin; first < end; first += 32 * Own) {
    TileTruth t[Own];
#pragma unroll
    for (int i = 0; i < Own; ++i) t[i] = truth(min(first + i * 32 + lane_index(), end - 1));
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int tile = first + i * 32 + lane_index();
      const bool visited = t[i].some & tile < end, all = visited & t[i].all, some = visited & !t[i].all;
      const unsigned fulls = __ballot_sync(~0u, all), partials = __ballot_sync(~0u, some);
      if (all) list[full + __popc(fulls & before)] = tile;
      if (some) list[capacity - 1 - partial - __popc(partials & before)] = tile;
      full += __popc(fulls), partial += __popc(partials);
    }
  }
  return {full, partial};
}

}  // namespace attn
