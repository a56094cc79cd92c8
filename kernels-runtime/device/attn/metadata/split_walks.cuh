// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shares long loops of tiles among CTAs: of KV tiles over query tiles, or of query tiles over KV tiles. One CTA does
// this, since it needs the sum of all loops and places in lists.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// The sum of a value over the threads of a CTA.
template <int N> ATTN_INLINE long long sum_of_threads(long long x) {
  constexpr int warps = Cta<N>::threads / 32;
  __shared__ long long sums[warps];
#pragma unroll
  for (int bit = 16; bit; bit /= 2)
    x += __shfl_xor_sync(~0u, x, bit);
  __syncthreads();
  if (lane_index() == 0)
    sums[warp_index()] = x;
  __syncthreads();
  x = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w)
    x += sums[w];
  return x;
}

template <int Group, int Least, class F>
ATTN_INLINE void split_walks(int *list, int *counts, int *split, int tiles, int heads, int ctas, int capacity,
                             F length) {
  if (block_index() != 0)
    return;
  long long own = 0;
  for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x)
    own += length(tile);
  const long long all = sum_of_threads<Group * 0>(own),
                  least = max((long long)Least, all * Group * heads / (12 * ctas));
  long long left = all; // in this iteration's tiles and those after them
  const int room = capacity / max(heads, 1);
  int used = 0, slots = 0, tiles_split = 0;
  for (int base = 0; base < tiles; base += blockDim.x) {
    const int tile = base + threadIdx.x, n = tile < tiles ? length(tile) : 0;
    int total;
    const long long rest = left - sum_before_thread<Group * 0>(n, total);
    left -= total;
    const long long share = max(least, rest * Group * heads / ctas), work = (long long)n * Group;
    int count = 2 * work > 3 * share ? int(min((work + share - 1) / share, (long long)n)) : 1;
    const int slot = slots + sum_before_thread<Group * 0>(count > 1 ? count : 0, total);
    if (slot + count > room) // so do the tiles behind it
      count = 1;
    slots += total; // beyond the room no slot is used
    int place = used + sum_before_thread<Group * 0>(tile < tiles ? count : 0, total);
    used += total;
    const int number = tiles_split + sum_before_thread<Group * 0>(count > 1, total);
    tiles_split += total;
    if (tile >= tiles)
      continue;
    if (count > 1)
      split[3 * number] = tile, split[3 * number + 1] = slot, split[3 * number + 2] = count;
    for (int i = 0; i < count; ++i, ++place)
      ((int4 *)list)[place] = {tile, int((long long)n * i / count), int((long long)n * (i + 1) / count),
                               count > 1 ? slot + i : -1};
  }
  if (threadIdx.x == 0)
    counts[0] = used, counts[1] = tiles_split, counts[2] = min(slots, room);
}

} // namespace attn
