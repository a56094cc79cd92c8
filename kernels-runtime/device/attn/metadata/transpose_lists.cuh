// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of one width (#attn.block_list): their offsets, as block maps have them (block_map.cuh), and, for each block of
// keys, the list of the tiles of rows that list it. The latter takes three kernels: one counts the entries of each
// block, one adds up the counts, one writes tiles. Each head's lists are divided into ListParts parts, of which each
// has counts of its own, so that tiles ascend and the result does not depend on the order of threads.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

constexpr int ListParts = 32;

// A CTA has 4 * Threads of `all` offsets. Each of several arrays has `entries` of them, one more than lists.
template <int Threads> ATTN_INLINE void list_offsets(int *offsets, int cta, int all, int entries, int width) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int i = (cta * 4 + n) * Threads + threadIdx.x;
    if (i < all)
      offsets[i] = (i / entries * (entries - 1) + i % entries) * width;
  }
}

template <int Threads, int Heads> ATTN_INLINE void clear_counts(int *counts, int cta, int ctas, int blocks) {
  const long long all = (long long)Heads * ListParts * blocks;
  for (long long i = (long long)cta * Threads + threadIdx.x; i < all; i += (long long)ctas * Threads)
    counts[i] = 0;
}

// The lists of Heads heads. Dense queries: each of `batch` sequences has `lines` lists for each head. Packed ones:
// a head has `lines` lists in all, those of sequence b from cu_q[b] / Rows + b on. `blocks` of keys are numbered
// likewise: each dense sequence has as many, or all packed ones together.
template <int Rows, int Keys, int Heads, bool PackedQ, bool PackedKv> struct FixedLists {
  const int *lists, *cu_q, *cu_kv;
  int batch, lines, width, blocks;

  ATTN_INLINE int lines_of_head() const { return PackedQ ? lines : batch * lines; }
  ATTN_INLINE int blocks_of_head() const { return PackedKv ? blocks : batch * blocks; }
  ATTN_INLINE int begin_of(int part) const { return (long long)lines_of_head() * part / ListParts; }

  // The place of a list among all, its sequence (-1: no tile has this list) and its tile of rows.
  struct Line {
    long long place;
    int b, tile;
  };
  ATTN_INLINE Line line_of(int head, int i) const {
    if constexpr (!PackedQ)
      return {((long long)(i / lines) * Heads + head) * lines + i % lines, i / lines, i % lines};
    int lo = 0, hi = batch; // sequence lo begins at list i or before, and hi behind it
    while (hi - lo > 1) {
      const int b = (lo + hi) / 2;
      (cu_q[b] / Rows + b <= i ? lo : hi) = b;
    }
    const int tile = i - cu_q[lo] / Rows - lo;
    const bool has_rows = batch > 0 && tile >= 0 && tile < (cu_q[lo + 1] - cu_q[lo] + Rows - 1) / Rows;
    return {(long long)head * lines + i, has_rows ? lo : -1, tile};
  }
  // The number of a sequence's block among those of a head; -1: there is no such block.
  ATTN_INLINE int block_of(int b, int column) const {
    if (b < 0 || column < 0)
      return -1;
    if constexpr (PackedKv)
      return column < (cu_kv[b + 1] - cu_kv[b] + Keys - 1) / Keys ? cu_kv[b] / Keys + b + column : -1;
    return column < blocks ? b * blocks + column : -1;
  }
};

// Counts the entries of each block in one part of a head's lists.
template <int Rows, int Keys, int Heads, bool PackedQ, bool PackedKv, int Threads>
ATTN_INLINE void count_lists(int *counts, const int *entries, const int *cu_q, const int *cu_kv, int batch, int lines,
                             int width, int blocks, int cta) {
  const FixedLists<Rows, Keys, Heads, PackedQ, PackedKv> lists = {entries, cu_q, cu_kv, batch, lines, width, blocks};
  int *const own = counts + (long long)cta * lists.blocks_of_head();
  const int begin = lists.begin_of(cta % ListParts), end = lists.begin_of(cta % ListParts + 1);
  for (long long i = threadIdx.x; i < (long long)(end - begin) * width; i += Threads) {
    const auto line = lists.line_of(cta / ListParts, begin + int(i / width));
    const int block = lists.block_of(line.b, entries[line.place * width + i % width]);
    if (block >= 0)
      atomicAdd(own + block, 1);
  }
}

// Writes where the list of each of a head's blocks begins, and, in place of counts, where each part's tiles begin in
// it.
template <int Threads> ATTN_INLINE void sum_counts(int *offsets, int *counts, int blocks, int head) {
  counts += (long long)head * ListParts * blocks;
  offsets += (long long)head * (blocks + 1);
  int before = 0;
#pragma unroll 1
  for (int from = 0; from < blocks; from += Threads) {
    const int block = from + threadIdx.x;
    int of[ListParts], sum = 0, all;
#pragma unroll
    for (int part = 0; part < ListParts; ++part)
      of[part] = block < blocks ? counts[(long long)part * blocks + block] : 0;
#pragma unroll
    for (int part = 0; part < ListParts; ++part)
      sum += of[part];
    int at = before + sum_before_thread<0 * Threads>(sum, all);
    before += all;
    if (block >= blocks)
      continue;
    offsets[block] = at;
#pragma unroll
    for (int part = 0; part < ListParts; ++part) {
      counts[(long long)part * blocks + block] = at;
      at += of[part];
    }
  }
  if (threadIdx.x == 0)
    offsets[blocks] = before;
}

// Writes the tiles of one part of a head's lists. The CTA is one warp, which takes list after list.
template <int Rows, int Keys, int Heads, bool PackedQ, bool PackedKv>
ATTN_INLINE void transpose_lists(int *tiles, int *places, const int *entries, const int *cu_q, const int *cu_kv,
                                 int batch, int lines, int width, int blocks, int cta) {
  const FixedLists<Rows, Keys, Heads, PackedQ, PackedKv> lists = {entries, cu_q, cu_kv, batch, lines, width, blocks};
  int *const own = places + (long long)cta * lists.blocks_of_head();
  tiles += (long long)(cta / ListParts) * lists.lines_of_head() * width;
  const int begin = lists.begin_of(cta % ListParts), end = lists.begin_of(cta % ListParts + 1), lane = lane_index();
#pragma unroll 1
  for (int i = begin; i < end; ++i) {
    const auto line = lists.line_of(cta / ListParts, i);
#pragma unroll 1
    for (int from = 0; from < width; from += 32) {
      const int column = from + lane < width ? entries[line.place * width + from + lane] : -1;
      const int block = lists.block_of(line.b, column), at = block >= 0 ? own[block] : 0;
      const unsigned same = __match_any_sync(~0u, block), earlier = same & ((1u << lane) - 1); // repeated blocks
      __syncwarp(); // all lanes have read the place before one changes it
      if (block >= 0) {
        tiles[at + __popc(earlier)] = line.tile;
        if (!earlier)
          own[block] = at + __popc(same);
      }
      __syncwarp();
    }
  }
}

} // namespace attn
