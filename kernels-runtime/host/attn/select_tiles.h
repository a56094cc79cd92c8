// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selects for each query tile its visible KV tiles (or for each KV tile its query tiles) from the arrays of the mask,
// and writes tile lists.
#pragma once

#include "attn/prelude.h"

namespace attn {

struct EntryRange {
  int least, largest, none_hidden;
};

template <int Most, int By = 1> ATTN_HELPER EntryRange entry_range(const int *entries, int count) {
  EntryRange range = {0x7fffffff, -0x7fffffff - 1, 1};
  for (int i = 0; i < count; ++i) {
    range.least = min(range.least, entries[i * By]);
    range.largest = max(range.largest, entries[i * By]);
  }
  return range;
}

template <int Most, int By = 1> ATTN_HELPER EntryRange entry_range(const int *entries, int count, int hidden) {
  EntryRange range = {0x7fffffff, -0x7fffffff - 1, 1};
  for (int i = 0; i < count; ++i) {
    if (entries[i * By] == hidden) {
      range.none_hidden = 0;
      continue;
    }
    range.least = min(range.least, entries[i * By]);
    range.largest = max(range.largest, entries[i * By]);
  }
  return range;
}

// The stored ranges of a tile.
template <int N> struct Ranges {
  int values[N];
};
template <int N> ATTN_HELPER Ranges<N> load_ranges(const int *array, int at) {
  Ranges<N> result;
  for (int i = 0; i < N; ++i)
    result.values[i] = array[(long long)at * N + i];
  return result;
}

ATTN_HELPER void store_entry(int *array, long long index, int value) { array[index] = value; }

// Is some pair of a tile visible, and are all pairs?
struct TileVisibility {
  bool some, all;
};
// The same for a group of tiles. If `settled`, the bits are the result for its tiles; if `inside`, the result of each
// tile follows from arrays alone.
struct GroupVisibility {
  bool some, settled, inside;
  int some_bits, all_bits;
};

ATTN_HELPER void init_lists(int *list, int *list_counter, int across) {
  if (block_index() != 0)
    return;
  for (int i = 0; i < 4; ++i)
    list_counter[i] = 0;
  for (int i = 0; i < across; ++i)
    list[i] = i;
}

ATTN_HELPER void init_lists(int *list, int *list_counter, int across, int part) {
  for (int i = 0; part == 0 && i < 4; ++i)
    list_counter[i] = 0;
  for (int i = part * 512; i < min(part * 512 + 512, across); ++i)
    list[i] = i;
}

// One thread counts the tiles first, then writes them.
template <class F, class I, class G, class P>
ATTN_HELPER void select_tiles(int *list_headers, int *list, int *list_counter, long long row, int entries, int across,
                              int begin, int end, int first, F visibility, I array_visibility, G group_visibility,
                              P gather) {
  auto for_each_tile = [&](auto full, auto partial) {
    for (int tile = begin; tile < end;) {
      const int group = (first + tile) / 32, next = min((group + 1) * 32 - first, end);
      const GroupVisibility known = group_visibility(group);
      if (!known.some) {
        tile = next;
        continue;
      }
      for (; tile < next; ++tile) {
        const int bit = first + tile - group * 32;
        const TileVisibility t =
            known.settled  ? TileVisibility{(known.some_bits >> bit & 1) != 0, (known.all_bits >> bit & 1) != 0}
            : known.inside ? array_visibility(tile)
                           : visibility(tile);
        if (t.some && t.all)
          full(tile);
        else if (t.some)
          partial(tile);
      }
    }
  };
  struct Span {
    int count = 0, first = 0x7fffffff, last = -1;
    void add(int tile) { ++count, first = min(first, tile), last = tile; }
    int own() const { return count == 0 || last - first + 1 == count ? 0 : count; }
  } fulls, partials;
  if (begin < end)
    gather(begin, end);
  for_each_tile([&](int tile) { fulls.add(tile); }, [&](int tile) { partials.add(tile); });
  const int own = fulls.own() + partials.own(), count = fulls.count + partials.count;
  const long long at =
      own ? across + __atomic_fetch_add((long long *)list_counter, (long long)own, __ATOMIC_RELAXED) : 0;
  const bool fits = at + own < entries; // kernels read one entry ahead
  if (!fits)
    __atomic_store_n(list_counter + 2, 1, __ATOMIC_RELAXED);
  const int full_at = fulls.own() ? (int)at : fulls.count ? fulls.first : 0;
  const int partial_at = partials.own() ? (int)at + fulls.own() : partials.count ? partials.first : 0;
  const int hull = min(fulls.first, partials.first);
  int *const of_row = list_headers + row * 8;
  of_row[0] = full_at, of_row[1] = fulls.count;
  of_row[2] = partial_at - fulls.count, of_row[3] = count;
  of_row[4] = count ? hull : 0;
  of_row[5] = count ? max(fulls.last, partials.last) - hull + 1 : 0;
  of_row[6] = own != 0, of_row[7] = 0;
  if (own == 0 || !fits)
    return;
  int *full_list = fulls.own() ? list + full_at : nullptr;
  int *partial_list = partials.own() ? list + partial_at : nullptr;
  for_each_tile(
      [&](int tile) {
        if (full_list)
          *full_list++ = tile;
      },
      [&](int tile) {
        if (partial_list)
          *partial_list++ = tile;
      });
}

} // namespace attn
