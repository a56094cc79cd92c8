// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selects for each query tile its visible KV tiles (or for each KV tile its query tiles) from the arrays of the mask,
// and writes tile lists.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// Entries [0, across) of the list are the numbers themselves, for rows whose tiles are consecutive. `across`: the
// number of tiles of a row.
ATTN_INLINE void init_lists(int *list, int *list_counter, int across) {
  const int own = block_index() * blockDim.x + threadIdx.x;
  if (own < 4)
    list_counter[own] = 0;
  for (int i = own; i < across; i += gridDim.x * blockDim.x)
    list[i] = i;
}
ATTN_INLINE void init_lists(int *list, int *list_counter, int across, int part) {
  if (part == 0 && threadIdx.x < 4)
    list_counter[threadIdx.x] = 0;
  for (int i = part * 512 + threadIdx.x; i < min(part * 512 + 512, across); i += blockDim.x)
    list[i] = i;
}

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

constexpr int Group = 32;        // tiles: one for each lane and bit
constexpr int BatchGroups = 512; // groups of a batch, whose bits a CTA holds at once

// One bit for each tile of a batch: visible (partly or fully), and fully visible.
struct BatchBits {
  unsigned some[BatchGroups], all[BatchGroups];
};

// Number of tiles of one kind, the first and the last of them.
struct TileSpan {
  int count, first, last;
  ATTN_INLINE void add(unsigned bits, int tile) {
    if (!bits)
      return;
    count += __popc(bits);
    first = min(first, tile + __ffs(bits) - 1), last = max(last, tile + 31 - __clz(bits));
  }
  ATTN_INLINE TileSpan of_warp() const {
    return {__reduce_add_sync(~0u, count), __reduce_min_sync(~0u, first), __reduce_max_sync(~0u, last)};
  }
  ATTN_INLINE void add(const TileSpan &more) {
    count += more.count, first = min(first, more.first), last = max(last, more.last);
  }
  ATTN_INLINE bool is_run() const { return last - first + 1 == count; }
};
constexpr TileSpan NoTiles = {0, 0x7fffffff, -1};

// Computes the bits of groups `begin`, a multiple of four, to `end`, and adds them to the spans. One lane processes a
// settled group; in other groups each lane tests one tile. Four groups are tested at once so that their loads overlap,
// and warps take such quadruples alternately, since groups that are not settled are neighbours.
constexpr int GroupsAtOnce = 4;
template <class P, class F, class I, class G>
ATTN_INLINE void mark_batch(BatchBits &bits, TileSpan &full, TileSpan &partial, int begin, int end, int run_begin,
                            int run_end, int first, F visibility, I array_visibility, G group_visibility, P gather) {
  constexpr int warps = Cta<0 * sizeof(P)>::threads / 32;
  gather(max(begin * Group - first, 0), min(end * Group - first, run_end));
  __syncthreads(); // gathered bits are complete, and the bits of the previous batch are no longer read
  const int lane = lane_index();
#pragma unroll 1
  for (int base = begin + warp_index() * GroupsAtOnce; base < end; base += 32 * warps) {
    const int own = base + lane / GroupsAtOnce * GroupsAtOnce * warps + lane % GroupsAtOnce, tile = own * Group - first;
    const unsigned in = bits_between(run_begin - tile, run_end - tile);
    const GroupVisibility known = group_visibility(min(own, end - 1));
    const bool needs_tests = known.some & !known.settled & in != 0;
    unsigned some = known.settled ? known.some_bits : 0, all = known.all_bits;
    unsigned tested = __ballot_sync(~0u, needs_tests), inside = __ballot_sync(~0u, !needs_tests | known.inside);
    // The place of this lane's group from the first of the next four on; negative if it needs no tests.
    int place = needs_tests ? lane : -1, at = base * Group - first + lane;
#pragma unroll 1
    for (; tested;
         tested >>= GroupsAtOnce, inside >>= GroupsAtOnce, place -= GroupsAtOnce, at += GroupsAtOnce * warps * Group) {
      constexpr unsigned each = (1u << GroupsAtOnce) - 1;
      if (!(tested & each))
        continue;
      TileVisibility t[GroupsAtOnce];
      if (!(~inside & each)) {
#pragma unroll
        for (int i = 0; i < GroupsAtOnce; ++i)
          t[i] = array_visibility(at + i * Group);
      } else {
#pragma unroll
        for (int i = 0; i < GroupsAtOnce; ++i)
          t[i] = visibility(at + i * Group);
      }
#pragma unroll
      for (int i = 0; i < GroupsAtOnce; ++i) {
        const unsigned of_some = __ballot_sync(~0u, t[i].some), of_all = __ballot_sync(~0u, t[i].all);
        some = place == i ? of_some : some, all = place == i ? of_all : all;
      }
    }
    some &= in, all &= some;
    if (own < end) {
      bits.some[own - begin] = some, bits.all[own - begin] = all;
      full.add(all, tile), partial.add(some & ~all, tile);
    }
  }
}

// Appends the indices of the set bits of a warp's words to `list`; `before` counts the bits of earlier words. The
// indices are ordered in shared memory first, so that global stores are coalesced.
ATTN_INLINE void list_bits(unsigned short *staged, unsigned word, int before, int count, int tile, int *list) {
  if (count == 0)
    return;
  __syncwarp();
  for (int end = before + __popc(word), tile = lane_index() * Group; word;) { // from both ends
    const int last = 31 - __clz(word);
    staged[before++] = tile + __ffs(word) - 1, staged[--end] = tile + last;
    word &= word - 1, word &= ~(1u << last);
  }
  __syncwarp();
#pragma unroll 2
  for (int i = lane_index(); i < count; i += 32)
    list[i] = tile + staged[i];
}

// Begin of a row's full and partial entries in the list; -1: there are none, or they are consecutive and need no
// entries.
struct RowPlace {
  int full, partial;
};

// Appends the tiles of a batch to the list; `next` gets the position of the next batch's entries. Each warp has
// consecutive groups.
template <int Zero = 0>
ATTN_INLINE void list_batch(const BatchBits &bits, int groups, int tile, int *list, const RowPlace &place,
                            RowPlace &next) {
  constexpr int warps = Cta<Zero>::threads / 32;
  __shared__ unsigned sums[warps];
  __shared__ unsigned short staged[warps][32 * Group];
  const int each = (groups + warps - 1) / warps, begin = warp_index() * each, end = min(begin + each, groups);
  // Both counts in one word: a batch has fewer than 2^16 tiles.
  auto counts_of = [](unsigned some, unsigned all) { return unsigned(__popc(all) << 16 | __popc(some & ~all)); };
  unsigned own = 0;
  for (int i = begin + lane_index(); i < end; i += 32)
    own += counts_of(bits.some[i], bits.all[i]);
  own = __reduce_add_sync(~0u, own);
  if (lane_index() == 0)
    sums[warp_index()] = own;
  __syncthreads(); // also makes the row's place visible
  const int full = place.full, partial = place.partial;
  if ((full & partial) < 0)
    return;
  unsigned earlier = 0, total = 0; // counts of earlier groups
#pragma unroll
  for (int w = 0; w < warps; ++w)
    earlier += w < warp_index() ? sums[w] : 0, total += sums[w];
  if (threadIdx.x == 0)
    next = {full < 0 ? -1 : full + int(total >> 16), partial < 0 ? -1 : partial + int(total & 0xffff)};
#pragma unroll 1
  for (int base = begin; base < end; base += 32) {
    const int i = base + lane_index();
    const unsigned some = i < end ? bits.some[i] : 0, all = i < end ? bits.all[i] : 0;
    const unsigned counts = counts_of(some, all), upto = sum_up_to_lane(counts), before = upto - counts,
                   of_warp = __shfl_sync(~0u, upto, 31);
    const int first = tile + base * Group;
    if (full >= 0)
      list_bits(staged[warp_index()], all, before >> 16, of_warp >> 16, first, list + full + (earlier >> 16));
    if (partial >= 0)
      list_bits(staged[warp_index()], some & ~all, before & 0xffff, of_warp & 0xffff, first,
                list + partial + (earlier & 0xffff));
    earlier += of_warp;
  }
}

// Writes the list of a row and its header: where full and partial tiles are listed, how many they are, and the span of
// both. There are two passes, since the place of a row's entries depends on their number. The second pass reads the
// bits of the first, unless there are several batches.
template <class F, class I, class G, class P>
ATTN_INLINE void select_tiles(int *list_headers, int *list, int *list_counter, long long row, int entries, int across,
                              int begin, int end, int first, F visibility, I array_visibility, G group_visibility,
                              P gather) {
  constexpr int warps = Cta<0 * sizeof(P)>::threads / 32;
  __shared__ BatchBits bits;
  __shared__ TileSpan spans[warps][2];
  __shared__ RowPlace places[2]; // alternates between batches; both are equal if nothing is listed
  const int group_begin = (first + begin) / Group / GroupsAtOnce * GroupsAtOnce,
            group_end = begin < end ? (first + end - 1) / Group + 1 : group_begin;
  const bool one = group_end - group_begin <= BatchGroups;
  TileSpan full = NoTiles, partial = NoTiles;
  auto mark = [&](int at) {
    mark_batch(bits, full, partial, at, min(at + BatchGroups, group_end), begin, end, first, visibility,
               array_visibility, group_visibility, gather);
    if (!one)
      __syncthreads();
  };
  for (int at = group_begin; at < group_end; at += BatchGroups)
    mark(at);
  full = full.of_warp(), partial = partial.of_warp();
  if (lane_index() == 0)
    spans[warp_index()][0] = full, spans[warp_index()][1] = partial;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int w = 1; w < warps; ++w)
      full.add(spans[w][0]), partial.add(spans[w][1]);
    const int own_full = full.is_run() ? 0 : full.count, own = own_full + (partial.is_run() ? 0 : partial.count);
    const unsigned long long at =
        own ? across + atomicAdd((unsigned long long *)list_counter, (unsigned long long)own) : 0;
    const bool fits = at + own < (unsigned)entries; // kernels read one entry ahead
    if (!fits)
      list_counter[2] = 1;
    places[0] = places[1] = {own_full && fits ? (int)at : -1, own > own_full && fits ? (int)at + own_full : -1};
    const int hull = min(full.first, partial.first), count = full.count + partial.count;
    const int full_at = own_full ? (int)at : full.count ? full.first : 0;
    const int partial_at = own > own_full ? (int)at + own_full : partial.count ? partial.first : 0;
    int4 *const of_row = (int4 *)(list_headers + row * 8);
    of_row[0] = make_int4(full_at, full.count, partial_at - full.count, count);
    of_row[1] = make_int4(count ? hull : 0, count ? max(full.last, partial.last) - hull + 1 : 0, own != 0, 0);
  }
  for (int at = group_begin; at < group_end; at += BatchGroups) {
    if (!one)
      mark(at);
    const int other = (at - group_begin) / BatchGroups % 2;
    list_batch(bits, min(at + BatchGroups, group_end) - at, at * Group - first, list, places[other], places[!other]);
  }
}

} // namespace attn
