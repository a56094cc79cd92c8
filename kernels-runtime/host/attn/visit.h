// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which key tiles a query tile has to visit, by what arrays hold there.
#pragma once

#include "attn/prelude.h"

namespace attn {

struct EntryRange {
  int least, largest, whole;
};

ATTN_HELPER EntryRange entry_range(const int *entries, int count) {
  EntryRange range = {0x7fffffff, -0x7fffffff - 1, 1};
  for (int i = 0; i < count; ++i) {
    range.least = min(range.least, entries[i]);
    range.largest = max(range.largest, entries[i]);
  }
  return range;
}

ATTN_HELPER EntryRange entry_range(const int *entries, int count, int hidden) {
  EntryRange range = {0x7fffffff, -0x7fffffff - 1, 1};
  for (int i = 0; i < count; ++i) {
    if (entries[i] == hidden) {
      range.whole = 0;
      continue;
    }
    range.least = min(range.least, entries[i]);
    range.largest = max(range.largest, entries[i]);
  }
  return range;
}

ATTN_HELPER void set(int *array, long long index, int value) {
  array[index] = value;
}

// May some pair of a tile be visible, and are all?
struct TileTruth {
  bool some, all;
};
struct TileCounts {
  int full, partial;
};

// Groups of 32 tiles, and of those that are not empty one tile after the other.
// Of tiles to be tested, the first has the last entry.
template <class F, class G>
ATTN_HELPER TileCounts select_tiles(int *list, int capacity, int full,
                                    int partial, int begin, int end, int first,
                                    F truth, G group_truth) {
  for (int tile = begin; tile < end;) {
    const int group = (first + tile) / 32, next = min((group + 1) * 32 - first, end);
    if (!group_truth(group)) {
      tile = next;
      continue;
    }
    for (; tile < next; ++tile) {
      const TileTruth t = truth(tile);
      if (t.some && t.all)
        list[full++] = tile;
      else if (t.some)
        list[capacity - 1 - partial++] = tile;
    }
  }
  return {full, partial};
}

} // namespace attn
