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

constexpr int Group = 32; // tiles: one a lane

// Adds to the list those of four groups of tiles that are visited, which `tile_of` numbers. Their loads are under way together. Of tiles to be
// tested, the first has the last entry: as the walk counts them behind the full ones, both ascend.
template <class T, class F> ATTN_INLINE void list_groups(TileCounts &counts, int *list, int capacity, int begin, int end, T tile_of, F truth) {
  constexpr int Own = 4;
  const unsigned before = (1u << lane_index()) - 1;
  TileTruth t[Own];
#pragma unroll
  for (int i = 0; i < Own; ++i) t[i] = truth(min(max(tile_of(i), begin), end - 1));
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    const int tile = tile_of(i);
    const bool visited = t[i].some & begin <= tile & tile < end, all = visited & t[i].all, some = visited & !t[i].all;
    const unsigned fulls = __ballot_sync(~0u, all), partials = __ballot_sync(~0u, some);
    if (all) list[counts.full + __popc(fulls & before)] = tile;
    if (some) list[capacity - 1 - counts.partial - __popc(partials & before)] = tile;
    counts.full += __popc(fulls), counts.partial += __popc(partials);
  }
}

// Up to 128 tiles are looked at one by one. Of more, 128 groups at a time, four a lane, and then what is in those that are not empty.
template <class F, class G>
ATTN_INLINE TileCounts select_tiles(int *list, int capacity, int full, int partial, int begin, int end, int first, F truth, G group_truth) {
  constexpr int Own = 4;
  TileCounts counts = {full, partial};
  if (end - begin <= Own * Group) {
    if (begin < end) list_groups(counts, list, capacity, begin, end, [=](int i) { return begin + i * Group + lane_index(); }, truth);
    return counts;
  }
  const int last = (first + end - 1) / Group;
  for (int group = (first + begin) / Group; group <= last; group += 32 * Own) {
    unsigned live[Own];
    bool some[Own];
#pragma unroll
    for (int i = 0; i < Own; ++i) some[i] = group_truth(min(group + i * 32 + lane_index(), last));
#pragma unroll
    for (int i = 0; i < Own; ++i) live[i] = __ballot_sync(~0u, some[i] & group + i * 32 + lane_index() <= last);
#pragma unroll
    for (int i = 0; i < Own; ++i)
      for (unsigned rest = live[i]; rest;) {
        int tiles[Own];
#pragma unroll
        for (int n = 0; n < Own; ++n, rest &= rest - 1)
          tiles[n] = rest ? (group + i * 32 + __ffs(rest) - 1) * Group - first + lane_index() : -1;
        list_groups(counts, list, capacity, begin, end, [&](int n) { return tiles[n]; }, truth);
      }
  }
  return counts;
}

}  // namespace attn
