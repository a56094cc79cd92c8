// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shares long loops of tiles among CTAs: of KV tiles over query tiles, or of query tiles over KV tiles.
#pragma once

#include "attn/prelude.h"

namespace attn {

template <int Group, int Least, class F>
ATTN_HELPER void split_walks(int *list, int *counts, int *split, int tiles, int heads, int ctas, int capacity,
                             F length) {
  if (block_index() != 0)
    return;
  long long left = 0; // in this tile and those after it
  for (int tile = 0; tile < tiles; ++tile)
    left += length(tile);
  const long long twelfth = left * Group * heads / (12 * ctas), least = twelfth < Least ? Least : twelfth;
  const int room = capacity / (heads < 1 ? 1 : heads);
  int used = 0, slots = 0, tiles_split = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int n = length(tile);
    const long long even = left * Group * heads / ctas, share = even < least ? least : even,
                    work = (long long)n * Group, even_parts = (work + share - 1) / share;
    left -= n;
    int count = 2 * work <= 3 * share ? 1 : even_parts < n ? int(even_parts) : n;
    if (count > 1 && slots + count > room)
      count = 1;
    for (int i = 0; i < count; ++i) {
      const int entry[] = {tile, int((long long)n * i / count), int((long long)n * (i + 1) / count),
                           count > 1 ? slots + i : -1};
      for (int k = 0; k < 4; ++k)
        list[4ll * used + k] = entry[k];
      ++used;
    }
    if (count > 1) {
      split[3 * tiles_split] = tile, split[3 * tiles_split + 1] = slots, split[3 * tiles_split + 2] = count;
      ++tiles_split, slots += count;
    }
  }
  counts[0] = used, counts[1] = tiles_split, counts[2] = slots;
}

} // namespace attn
