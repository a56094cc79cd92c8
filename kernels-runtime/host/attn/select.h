// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of the most important blocks (attn.select).
#pragma once
#include "attn/windows.h"

namespace attn {

// Candidates of a list: the Kept most important ones, in ascending order, and what came since they were last cut.
template <int Kept> struct Candidates {
  static constexpr int Capacity = 2 * Kept + 64;
  unsigned keys[Capacity], threshold = 0; // keys up to the threshold are not taken any more
  int blocks[Capacity], size = 0;

  void add(float importance, int block) {
    // It orders as numbers do, with -0 as 0 and NaN as -infinity, and is never 0.
    const unsigned bits = bits_of(importance == importance ? importance + 0.f : -infinity),
                   key = bits ^ (bits >> 31 ? ~0u : 1u << 31);
    if (key <= threshold)
      return;
    if (size == Capacity)
      cut();
    if (key <= threshold)
      return;
    keys[size] = key;
    blocks[size++] = block;
  }
  // Cuts them to the Kept best, of equal ones the first.
  void cut() {
    if (size <= Kept)
      return;
    const auto count = [&](unsigned least) {
      int found = 0;
      for (int i = 0; i < size; ++i)
        found += keys[i] >= least;
      return found;
    };
    unsigned least = 0;
    for (unsigned bit = 1u << 31; bit; bit >>= 1)
      if (count(least | bit) >= Kept)
        least |= bit;
    int equal = Kept - count(least + 1), to = 0;
    for (int i = 0; i < size; ++i)
      if (keys[i] > least || (keys[i] == least && equal-- > 0)) {
        keys[to] = keys[i];
        blocks[to++] = blocks[i];
      }
    size = to;
    threshold = least;
  }
};
template <> struct Candidates<0> {
  int blocks[1], size = 0;
};

// Rows of a sequence that one list sees; lse of probabilities only.
template <class T> struct SelectRows {
  const T *q, *k;
  const float *lse;
  long long q_row, q_head, k_row, lse_head;
  int windows;
};

// What has no part in a sum, or in a largest one. A NaN has in both.
template <int IsLargest> ATTN_HELPER float nothing() { return IsLargest ? -infinity : 0; }
template <int IsLargest> ATTN_HELPER float join(float a, float b) {
  return !IsLargest ? a + b : a != a || a >= b ? a : b;
}

// Sums over a group's heads of scores, or of their probabilities, or the largest scores, for 32 windows.
template <int Group, int Dim, int IsProbability, int IsLargest, unsigned Scale, class T>
ATTN_TILE_OP void add_heads(float (&p)[32], const SelectRows<T> &rows, int query, int first, int count) {
  constexpr float log2_e = 1.44269504f;
  float k[Dim][32], q[Dim];
  for (int i = 0; i < 32; ++i)
    for (int c = 0; c < Dim; ++c)
      k[c][i] = i < count ? to_float(rows.k[(first + i) * rows.k_row + c]) : 0.0f;
  for (int i = 0; i < 32; ++i)
    p[i] = nothing<IsLargest>();
  for (int h = 0; h < Group; ++h) {
    const float lse = IsProbability ? rows.lse[h * rows.lse_head + query] : 0;
    if (lse == -infinity)
      continue;
    for (int c = 0; c < Dim; ++c)
      q[c] = to_float(rows.q[query * rows.q_row + h * rows.q_head + c]);
    alignas(64) float s[32] = {};
    for (int c = 0; c < Dim; ++c)
      ATTN_VECTORIZE
    for (int i = 0; i < 32; ++i)
      s[i] += q[c] * k[c][i];
    if (IsProbability)
      for (int i = 0; i < 32; i += lanes)
        at(s + i) = at(s + i) * float_of(Scale) - lse * log2_e;
    for (int i = 0; i < 32; ++i)
      p[i] = join<IsLargest>(p[i], IsProbability ? exp2(s[i]) : s[i]);
  }
}

// The list of one tile of a sequence of so many tokens.
template <int Group, int Dim, int IsProbability, int IsLargest, int Length, int Stride, int Block, int Count, int First,
          int Local, int Rows, unsigned Scale, class T>
ATTN_TILE_OP void select_list(int *list, const SelectRows<T> &rows, int tile, int tokens) {
  constexpr int entries = Count + max(Rows / Block - 1, 0), kept = Count - First - Local;
  constexpr int in_block = Block / Stride, in_window = Length / Stride;
  if (tile * (long long)Rows >= tokens) {
    for (int e = 0; e < entries; ++e)
      list[e] = -1;
    return;
  }
  const int query = tile * Rows, current = query / Block, last = (query + min(tokens - query, Rows) - 1) / Block;
  Candidates<kept> candidates;
  if constexpr (kept > 0)
    if (current >= Count) {
      const int visible = min(rows.windows, windows_of<Length, Stride>(query + 1));
      // Importances of blocks that are not complete, those of a window and of the block that it begins in.
      constexpr int open = (in_window - 1) / in_block + 2;
      float importance[open], p[32];
      for (float &x : importance)
        x = nothing<IsLargest>();
      const int end = (current - Local + 1) * in_block;
      for (int i = 0; i < end; ++i) {
        const int block = i / in_block;
        if (i < visible) {
          if (i % 32 == 0)
            add_heads<Group, Dim, IsProbability, IsLargest, Scale>(p, rows, query, i, min(visible - i, 32));
          for (int j = block; j <= (i + in_window - 1) / in_block; ++j) {
            const int d = i - j * in_block;
            const float cover = min(in_block, in_window + d) - max(0, d);
            importance[j % open] = join<IsLargest>(importance[j % open], p[i % 32] * cover);
          }
        }
        if ((i + 1) % in_block == 0) {
          if (block >= First)
            candidates.add(importance[block % open], block);
          importance[block % open] = nothing<IsLargest>();
        }
      }
      candidates.cut();
    }
  for (int e = 0; e < entries; ++e) {
    int block = e; // where there is no choice, all of them
    if (current >= Count && e >= First)
      // The local ones and those that begin behind the first query follow what was chosen.
      block = e < First + kept ? candidates.blocks[e - First] : current + 1 + e - Count;
    list[e] = block <= last ? block : -1;
  }
}

#define ATTN_SELECT_NUMBERS                                                                                            \
  int Heads, int Lists, int KvHeads, int Dim, int IsProbability, int IsLargest, int Length, int Stride, int Block,     \
      int Count, int First, int Local, int Rows, unsigned Scale, int Warps, int Tiles, int Capacity, int Part,         \
      int Ring

// A line of packed sequences. (A CTA has one; Warps, Tiles, Capacity, Part and Ring have a meaning on GPUs only.)
template <ATTN_SELECT_NUMBERS, class T>
ATTN_TILE_OP void select_blocks(int *blocks, const T *q, const T *k, const int *cu, const int *cu_c,
                                long long blocks_head, long long q_row, long long q_head, long long k_row,
                                long long k_head, int batch, int total_q, int block, const float *lse = nullptr,
                                long long lse_head = 0) {
  constexpr int group = Heads / Lists, entries = Count + max(Rows / Block - 1, 0);
  const auto line_of = [&](int sequence) { return cu[sequence] / Rows + sequence; };
  const int lines = total_q / Rows + batch, head = block % Lists, line = lines - 1 - block / Lists;
  int low = 0, high = batch; // line_of(low) <= line < line_of(high), which may not be a sequence
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (line_of(middle) <= line ? low : high) = middle;
  }
  SelectRows<T> rows = {};
  int tile = 0, tokens = 0;
  if (batch > 0 && line_of(low) <= line) {
    tile = line - line_of(low);
    tokens = cu[low + 1] - cu[low];
    rows = {q + cu[low] * q_row + head * group * q_head,
            k + cu_c[low] * k_row + head / (Lists / KvHeads) * k_head,
            lse ? lse + head * group * lse_head + cu[low] : nullptr,
            q_row,
            q_head,
            k_row,
            lse_head,
            cu_c[low + 1] - cu_c[low]};
  }
  select_list<group, Dim, IsProbability, IsLargest, Length, Stride, Block, Count, First, Local, Rows, Scale>(
      blocks + head * blocks_head + (long long)line * entries, rows, tile, tokens);
}

// The same of dense sequences.
template <ATTN_SELECT_NUMBERS, class T>
ATTN_TILE_OP void select_dense_blocks(int *blocks, const T *q, const T *k, long long blocks_batch,
                                      long long blocks_head, long long q_batch, long long q_row, long long q_head,
                                      long long k_batch, long long k_row, long long k_head, int batch, int seqlen_q,
                                      int windows, int block, const float *lse = nullptr, long long lse_batch = 0,
                                      long long lse_head = 0) {
  constexpr int group = Heads / Lists, entries = Count + max(Rows / Block - 1, 0);
  const int lines = (seqlen_q + Rows - 1) / Rows, head = block % Lists, sequence = block / Lists % batch,
            tile = lines - 1 - block / Lists / batch;
  const SelectRows<T> rows = {q + sequence * q_batch + head * group * q_head,
                              k + sequence * k_batch + head / (Lists / KvHeads) * k_head,
                              lse ? lse + sequence * lse_batch + head * group * lse_head : nullptr,
                              q_row,
                              q_head,
                              k_row,
                              lse_head,
                              windows};
  select_list<group, Dim, IsProbability, IsLargest, Length, Stride, Block, Count, First, Local, Rows, Scale>(
      blocks + sequence * blocks_batch + head * blocks_head + (long long)tile * entries, rows, tile, seqlen_q);
}

} // namespace attn
