// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of one width (#attn.block_list): their offsets, as block maps have them (block_map.h), and, for each block of
// keys, the list of the tiles of rows that list it. The latter takes three kernels: one counts the entries of each
// block, one adds up the counts, one writes tiles. Each head's lists are divided into ListParts parts, of which each
// has counts of its own, so that tiles ascend and the result does not depend on the order of threads.
#pragma once
#include "attn/prelude.h"

namespace attn {

constexpr int ListParts = 32;

// A CTA has 4 * Threads of `all` offsets. Each of several arrays has `entries` of them, one more than lists.
template <int Threads> ATTN_TILE_OP void list_offsets(int *offsets, int cta, int all, int entries, int width) {
  for (int i = cta * 4 * Threads, end = min(i + 4 * Threads, all); i < end; ++i)
    offsets[i] = (i / entries * (entries - 1) + i % entries) * width;
}

template <int Threads, int Heads> ATTN_TILE_OP void clear_counts(int *counts, int cta, int ctas, int blocks) {
  const long long all = (long long)Heads * ListParts * blocks;
  for (long long i = all * cta / ctas, end = all * (cta + 1) / ctas; i < end; ++i)
    counts[i] = 0;
}

// The lists of Heads heads. Dense queries: each of `batch` sequences has `lines` lists for each head. Packed ones:
// a head has `lines` lists in all, those of sequence b from cu_q[b] / Rows + b on. `blocks` of keys are numbered
// likewise: each dense sequence has as many, or all packed ones together.
template <int Rows, int Keys, int Heads, bool PackedQ, bool PackedKv> struct FixedLists {
  const int *lists, *cu_q, *cu_kv;
  int batch, lines, width, blocks;

  int lines_of_head() const { return PackedQ ? lines : batch * lines; }
  int blocks_of_head() const { return PackedKv ? blocks : batch * blocks; }
  int begin_of(int part) const { return (long long)lines_of_head() * part / ListParts; }

  // The place of a list among all, its sequence (-1: no tile has this list) and its tile of rows.
  struct Line {
    long long place;
    int b, tile;
  };
  Line line_of(int head, int i) const {
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
  int block_of(int b, int column) const {
    if (b < 0 || column < 0)
      return -1;
    if constexpr (PackedKv)
      return column < (cu_kv[b + 1] - cu_kv[b] + Keys - 1) / Keys ? cu_kv[b] / Keys + b + column : -1;
    return column < blocks ? b * blocks + column : -1;
  }
};

// Counts the entries of each block in one part of a head's lists.
template <int Rows, int Keys, int Heads, bool PackedQ, bool PackedKv, int Threads>
ATTN_TILE_OP void count_lists(int *counts, const int *entries, const int *cu_q, const int *cu_kv, int batch, int lines,
                              int width, int blocks, int cta) {
  const FixedLists<Rows, Keys, Heads, PackedQ, PackedKv> lists = {entries, cu_q, cu_kv, batch, lines, width, blocks};
  int *const own = counts + (long long)cta * lists.blocks_of_head();
  for (int i = lists.begin_of(cta % ListParts), end = lists.begin_of(cta % ListParts + 1); i < end; ++i) {
    const auto line = lists.line_of(cta / ListParts, i);
    for (int n = 0; n < width; ++n)
      if (const int block = lists.block_of(line.b, entries[line.place * width + n]); block >= 0)
        ++own[block];
  }
}

// Writes where the list of each of a head's blocks begins, and, in place of counts, where each part's tiles begin in
// it.
template <int Threads> ATTN_TILE_OP void sum_counts(int *offsets, int *counts, int blocks, int head) {
  counts += (long long)head * ListParts * blocks;
  offsets += (long long)head * (blocks + 1);
  int at = 0;
  for (int block = 0; block < blocks; ++block) {
    offsets[block] = at;
    for (int part = 0; part < ListParts; ++part) {
      const int own = counts[(long long)part * blocks + block];
      counts[(long long)part * blocks + block] = at;
      at += own;
    }
  }
  offsets[blocks] = at;
}

// Writes the tiles of one part of a head's lists.
template <int Rows, int Keys, int Heads, bool PackedQ, bool PackedKv>
ATTN_TILE_OP void transpose_lists(int *tiles, int *places, const int *entries, const int *cu_q, const int *cu_kv,
                                  int batch, int lines, int width, int blocks, int cta) {
  const FixedLists<Rows, Keys, Heads, PackedQ, PackedKv> lists = {entries, cu_q, cu_kv, batch, lines, width, blocks};
  int *const own = places + (long long)cta * lists.blocks_of_head();
  tiles += (long long)(cta / ListParts) * lists.lines_of_head() * width;
  for (int i = lists.begin_of(cta % ListParts), end = lists.begin_of(cta % ListParts + 1); i < end; ++i) {
    const auto line = lists.line_of(cta / ListParts, i);
    for (int n = 0; n < width; ++n)
      if (const int block = lists.block_of(line.b, entries[line.place * width + n]); block >= 0)
        tiles[own[block]++] = line.tile;
  }
}

} // namespace attn
