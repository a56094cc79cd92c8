// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges of arrays that a mask reads: the least and the largest entry of a tile.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

struct EntryRange {
  int least, largest, none_hidden;
};

// Minimum and maximum of up to Most entries with stride By, without hidden entries. For a full tile all loads are in
// flight at once.
template <int Most, int By, bool Hides>
ATTN_INLINE EntryRange entry_range_of(const int *entries, int count, int hidden) {
  constexpr int Each = (Most + 31) / 32;
  const int *const own = entries + lane_index() * By;
  int least = 0x7fffffff, largest = -0x7fffffff - 1;
  bool none_hidden = true;
  auto join = [&](int x) {
    const bool hides = Hides && x == hidden;
    none_hidden &= !hides;
    least = min(least, hides ? 0x7fffffff : x), largest = max(largest, hides ? -0x7fffffff - 1 : x);
  };
  if (count == 32 * Each) {
    int x[Each];
#pragma unroll
    for (int i = 0; i < Each; ++i)
      x[i] = own[32 * i * By];
#pragma unroll
    for (int i = 0; i < Each; ++i)
      join(x[i]);
  } else {
#pragma unroll 1
    for (int i = 0; i < count - lane_index(); i += 32)
      join(own[i * By]);
  }
  return {__reduce_min_sync(~0u, least), __reduce_max_sync(~0u, largest), __all_sync(~0u, none_hidden)};
}
template <int Most, int By = 1> ATTN_INLINE EntryRange entry_range(const int *entries, int count) {
  return entry_range_of<Most, By, false>(entries, count, 0);
}
template <int Most, int By = 1> ATTN_INLINE EntryRange entry_range(const int *entries, int count, int hidden) {
  return entry_range_of<Most, By, true>(entries, count, hidden);
}

// Loads the ranges of a tile with one, two or a few vector loads.
template <int N> struct Ranges {
  int values[N];
};
template <int N> ATTN_INLINE Ranges<N> load_ranges(const int *array, int at) {
  Ranges<N> result;
  const int *const from = array + (long long)at * N;
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const int4 x = *(const int4 *)(from + i);
      result.values[i] = x.x, result.values[i + 1] = x.y, result.values[i + 2] = x.z, result.values[i + 3] = x.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const int2 x = *(const int2 *)(from + i);
      result.values[i] = x.x, result.values[i + 1] = x.y;
    }
  }
  return result;
}

ATTN_INLINE void store_entry(int *array, long long index, int value) {
  if (lane_index() == 0)
    array[index] = value;
}

} // namespace attn
