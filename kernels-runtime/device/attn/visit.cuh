// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tiles of the other side a tile has to visit, by what arrays hold there.
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

ATTN_INLINE void begin_lists(int *list, int *taken, int across) {
  const int own = block_index() * blockDim.x + threadIdx.x;
  if (own < 4) taken[own] = 0;
  for (int i = own; i < across; i += gridDim.x * blockDim.x) list[i] = i;
}

// May some pair of a tile be visible, and are all?
struct TileTruth { bool some, all; };
// Of a group: may some pair be visible? If `settled`, its tiles' truths are these bits; if `inside`, they follow from arrays alone.
struct GroupTruth { bool some, settled, inside; int some_bits, all_bits; };

constexpr int Group = 32;        // tiles: one a lane, one a bit
constexpr int ChunkGroups = 512; // whose bits a block holds at once

// What is known of a chunk's tiles, a bit each: those that are visited, and of these those that need no test.
struct ChunkBits { unsigned some[ChunkGroups], all[ChunkGroups]; };

// How many tiles of a kind there are, the first and the last of them.
struct TileSpan {
  int count, first, last;
  ATTN_INLINE void add(unsigned bits, int tile) {
    if (!bits) return;
    count += __popc(bits);
    first = min(first, tile + __ffs(bits) - 1), last = max(last, tile + 31 - __clz(bits));
  }
  ATTN_INLINE TileSpan of_warp() const {
    return {__reduce_add_sync(~0u, count), __reduce_min_sync(~0u, first), __reduce_max_sync(~0u, last)};
  }
  ATTN_INLINE void add(const TileSpan &more) { count += more.count, first = min(first, more.first), last = max(last, more.last); }
  ATTN_INLINE bool is_run() const { return last - first + 1 == count; }
};
constexpr TileSpan NoTiles = {0, 0x7fffffff, -1};

// Fills in the bits of some groups, a tile a lane: number lanes[i] of those that lie `apart` from word `at` and tile `tile` on. Of tiles
// beside the run, `length` from `begin` on, nothing is known.
constexpr int GroupsAtOnce = 4;
template <class F> ATTN_INLINE void mark_groups(ChunkBits &bits, const int (&lanes)[GroupsAtOnce], int at, int apart, int tile, int begin, unsigned length, F truth) {
  TileTruth t[GroupsAtOnce];
  bool in[GroupsAtOnce];
#pragma unroll
  for (int i = 0; i < GroupsAtOnce; ++i) {
    const int own = tile + lanes[i] * apart * Group + lane_index();
    in[i] = unsigned(own - begin) < length;
    t[i] = truth(own);
  }
#pragma unroll
  for (int i = 0; i < GroupsAtOnce; ++i) {
    const unsigned some = __ballot_sync(~0u, t[i].some & in[i]), all = __ballot_sync(~0u, t[i].all) & some;
    const int word = at + lanes[i] * apart;
    if (lane_index() == 0) bits.some[word] = some, bits.all[word] = all;
  }
}

// Fills in the bits of groups `begin` to `end`: each lane those of a group that is settled, and all lanes together, a tile each, those of the
// others. A warp takes 32 groups, neighbours where there are many, and looks at four at a time, whose loads are under way together.
template <class P, class F, class I, class G>
ATTN_INLINE void mark_chunk(ChunkBits &bits, int begin, int end, int run_begin, int run_end, int first, F truth, I inner_truth, G group_truth, P prepare) {
  constexpr int warps = Block<0 * sizeof(P)>::threads / 32;
  prepare(max(begin * Group - first, 0), min(end * Group - first, run_end));
  __syncthreads();
  const int apart = end - begin <= 32 * warps ? warps : 1;
  for (int base = begin + warp_index() * (apart == 1 ? 32 : 1); base < end; base += 32 * warps) {
    const int own = base + lane_index() * apart, tile = own * Group - first;
    const GroupTruth known = group_truth(min(own, end - 1));
    if (own < end) {
      const unsigned in = known.settled ? bits_between(run_begin - tile, run_end - tile) : 0, some = known.some_bits & in;
      bits.some[own - begin] = some, bits.all[own - begin] = known.all_bits & some;
    }
    __syncwarp();
    const bool asks = known.some & !known.settled & own < end;
    if (__all_sync(~0u, asks & known.inside)) {
#pragma unroll 1
      for (int i = 0; i < 32; i += GroupsAtOnce) mark_groups(bits, {i, i + 1, i + 2, i + 3}, base - begin, apart, base * Group - first, 0, ~0u, inner_truth);
      continue;
    }
    int lane = 0;
    for (unsigned rest = __ballot_sync(~0u, asks); rest;) {
      int lanes[GroupsAtOnce];
#pragma unroll
      for (int i = 0; i < GroupsAtOnce; ++i, rest &= rest - 1) lanes[i] = lane = rest ? __ffs(rest) - 1 : lane;
      mark_groups(bits, lanes, base - begin, apart, base * Group - first, run_begin, run_end - run_begin, truth);
    }
  }
  __syncthreads();
}

// Writes the numbers of the bits that are set in a warp's words to `list`: `before` are so many in words before a lane's own. They are put in
// order in shared memory, as memory is written a line at a time.
ATTN_INLINE void list_bits(unsigned short *staged, unsigned word, int before, int count, int tile, int *list) {
  if (count == 0) return;
  __syncwarp();
  for (; word; word &= word - 1) staged[before++] = lane_index() * Group + __ffs(word) - 1;
  __syncwarp();
  for (int i = lane_index(); i < count; i += 32) list[i] = tile + staged[i];
}

// Lists the tiles of a chunk behind `fulls` and `partials` that there are, and counts them too; a null list: these are listed elsewhere.
template <int Zero = 0>
ATTN_INLINE void list_chunk(const ChunkBits &bits, int groups, int tile, int *full_list, int *partial_list, int &fulls, int &partials) {
  constexpr int threads = Block<Zero>::threads, warps = threads / 32;
  __shared__ unsigned sums[warps];
  __shared__ unsigned short staged[warps][32 * Group];
  for (int base = 0; base < groups; base += threads) {
    const int own = base + threadIdx.x;
    const unsigned some = own < groups ? bits.some[own] : 0, all = own < groups ? bits.all[own] : 0;
    const unsigned counts = __popc(all) << 16 | __popc(some & ~all);  // of both kinds: a chunk has fewer than 2^16 tiles
    unsigned before = sum_up_to_lane(counts);
    __syncthreads();
    if (lane_index() == 31) sums[warp_index()] = before;
    __syncthreads();
    before -= counts;
    unsigned ahead = 0, total = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) ahead += w < warp_index() ? sums[w] : 0, total += sums[w];
    const unsigned of_warp = sums[warp_index()];
    const int first = tile + (base + warp_index() * 32) * Group;
    if (full_list) list_bits(staged[warp_index()], all, before >> 16, of_warp >> 16, first, full_list + fulls + (ahead >> 16));
    if (partial_list) list_bits(staged[warp_index()], some & ~all, before & 0xffff, of_warp & 0xffff, first, partial_list + partials + (ahead & 0xffff));
    fulls += total >> 16, partials += total & 0xffff;
  }
}

// NOTE: two passes, since the place of a row's entries follows from how many they are; the second finds the bits where the first left
// them, unless there are several chunks.
template <class F, class I, class G, class P>
ATTN_INLINE void select_tiles(int *visits, int *list, int *taken, long long row, int entries, int across, int begin, int end, int first, F truth,
                              I inner_truth, G group_truth, P prepare) {
  constexpr int threads = Block<0 * sizeof(P)>::threads, warps = threads / 32;
  __shared__ ChunkBits bits;
  __shared__ TileSpan spans[warps][2];
  __shared__ int place;
  const int group_begin = (first + begin) / Group, group_end = begin < end ? (first + end - 1) / Group + 1 : group_begin;
  const bool one = group_end - group_begin <= ChunkGroups;
  TileSpan full = NoTiles, partial = NoTiles;
  for (int at = group_begin; at < group_end; at += ChunkGroups) {
    const int behind = min(at + ChunkGroups, group_end);
    mark_chunk(bits, at, behind, begin, end, first, truth, inner_truth, group_truth, prepare);
    for (int g = at + threadIdx.x; g < behind; g += threads) {
      const unsigned some = bits.some[g - at], all = bits.all[g - at];
      full.add(all, g * Group - first), partial.add(some & ~all, g * Group - first);
    }
    if (!one) __syncthreads();
  }
  full = full.of_warp(), partial = partial.of_warp();
  if (lane_index() == 0) spans[warp_index()][0] = full, spans[warp_index()][1] = partial;
  __syncthreads();
  full = partial = NoTiles;
#pragma unroll
  for (int w = 0; w < warps; ++w) full.add(spans[w][0]), partial.add(spans[w][1]);
  const int own_full = full.is_run() ? 0 : full.count, own_partial = partial.is_run() ? 0 : partial.count, own = own_full + own_partial;
  if (threadIdx.x == 0) {
    const unsigned long long at = own ? across + atomicAdd((unsigned long long *)taken, (unsigned long long)own) : 0;
    const bool fits = at + own < (unsigned)entries;  // one more is read ahead of its use
    if (!fits) taken[2] = 1;
    place = fits ? (int)at : -1;
    const int hull = min(full.first, partial.first), count = full.count + partial.count;
    const int full_at = own_full ? (int)at : full.count ? full.first : 0;
    const int partial_at = own_partial ? (int)at + own_full : partial.count ? partial.first : 0;
    int4 *const of_row = (int4 *)(visits + row * 8);
    of_row[0] = make_int4(full_at, full.count, partial_at - full.count, count);
    of_row[1] = make_int4(count ? hull : 0, count ? max(full.last, partial.last) - hull + 1 : 0, own != 0, 0);
  }
  __syncthreads();
  if (own == 0 || place < 0) return;
  int *const full_list = own_full ? list + place : nullptr, *const partial_list = own_partial ? list + place + own_full : nullptr;
  int fulls = 0, partials = 0;
  for (int at = group_begin; at < group_end; at += ChunkGroups) {
    const int behind = min(at + ChunkGroups, group_end);
    if (!one) mark_chunk(bits, at, behind, begin, end, first, truth, inner_truth, group_truth, prepare);
    list_chunk(bits, behind - at, at * Group - first, full_list, partial_list, fulls, partials);
    if (!one) __syncthreads();
  }
}

}  // namespace attn
