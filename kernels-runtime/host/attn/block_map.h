// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps of block-sparse masks: one bit for each pair of a row block and a column block, built from lists.
#pragma once

#include "attn/prelude.h"

namespace attn {

ATTN_HELPER void fill_block_bits(int *bits, int rows, int words, const int *offsets, const int *columns, int entries,
                                 int lines, int first, int step) {
  for (long long row = first; row < (long long)lines * rows; row += step) {
    unsigned *const own = (unsigned *)bits + row * words;
    for (int i = 0; i < words; ++i)
      own[i] = 0;
    const int *const list = offsets + row + row / rows;
    for (int i = max(list[0], 0), end = min(list[1], entries); i < end; ++i) {
      const unsigned column = columns[i];
      if (column / 32 < (unsigned)words)
        own[column / 32] |= 1u << column % 32;
    }
  }
}

ATTN_HELPER bool block_bit(const int *bits, int rows, int words, int row, int column) {
  return row < rows && column / 32 < words && ((unsigned)bits[(long long)row * words + column / 32] >> column % 32 & 1);
}

ATTN_HELPER bool block_bit_near(const int *bits, int rows, int words, int row, int column, int first) {
  return column - first < 32 && block_bit(bits, rows, words, row, column);
}

// A row's list, clamped to the entries that exist.
struct BlockList {
  const int *columns;
  int begin, end;
};
ATTN_HELPER bool has(const BlockList &list, int column) {
  for (int i = list.begin; i < list.end; ++i)
    if (list.columns[i] == column)
      return true;
  return false;
}
ATTN_HELPER BlockList list_of(const int *offsets, int rows, const int *columns, int entries, int row) {
  if (row >= rows)
    return {columns, 0, 0};
  return {columns, max(offsets[row], 0), min(offsets[row + 1], entries)};
}

// Is a block in its row's list? Without `searches` the result is true.
ATTN_HELPER bool is_in_list(const int *offsets, int rows, const int *columns, int entries, int row, int column,
                            bool searches) {
  return !searches || has(list_of(offsets, rows, columns, entries, row), column);
}

// Source of gathered(): the bits of the map, by rows or, transposed, by columns; or, without bits, a list of blocks
// that consist of whole tiles.
struct GatheredBlocks {
  const int *bits;
  int rows, words, begin, end, tile, size;
  bool transposed;
  BlockList list;
};
template <int Number> ATTN_HELPER GatheredBlocks &gathered_blocks() {
  static thread_local GatheredBlocks blocks;
  return blocks;
}

template <int Number, int Tile, int Size, bool Transposed>
ATTN_HELPER void gather_block_tiles(const int *bits, int rows, int words, int begin, int end, int, int) {
  gathered_blocks<Number>() = {bits, rows, words, begin, end, Tile, Size, Transposed, {}};
}
template <int Number, int Tile, int Size>
ATTN_HELPER void gather_list_tiles(const int *offsets, int rows, const int *columns, int entries, int row, int, int) {
  gathered_blocks<Number>() = {nullptr, 0, 0, 0, 0, Tile, Size, false, list_of(offsets, rows, columns, entries, row)};
}

struct GatheredTile {
  bool some, all;
};
template <int Number> ATTN_HELPER GatheredTile gathered(int tile) {
  const GatheredBlocks &blocks = gathered_blocks<Number>();
  const long long from = (long long)tile * blocks.tile;
  if (!blocks.bits) {
    const bool is = has(blocks.list, from / blocks.size);
    return {is, is};
  }
  const int first = from / blocks.size, last = (from + blocks.tile - 1) / blocks.size;
  GatheredTile known = {false, true};
  for (int own = blocks.begin; own < blocks.end; ++own)
    for (int other = first; other <= last; ++other) {
      const bool is = blocks.transposed ? block_bit(blocks.bits, blocks.rows, blocks.words, other, own)
                                        : block_bit(blocks.bits, blocks.rows, blocks.words, own, other);
      known = {known.some || is, known.all && is};
    }
  return known;
}
struct GatheredTileBits {
  int some, all;
};
template <int Number> ATTN_HELPER GatheredTileBits gathered_bits(int first) {
  const GatheredBlocks &blocks = gathered_blocks<Number>();
  GatheredTileBits bits = {0, 0};
  if (!blocks.bits) { // entries are looked at once for all 32 tiles
    const long long tiles = blocks.size / blocks.tile;
    for (int i = blocks.list.begin; i < blocks.list.end; ++i) {
      const long long tile = blocks.list.columns[i] * tiles - first;
      for (long long own = max(tile, 0ll); own < min(tile + tiles, 32ll); ++own)
        bits.some |= int(1u << own);
    }
    bits.all = bits.some;
    return bits;
  }
  for (int i = max(-first, 0); i < 32; ++i) {
    const GatheredTile known = gathered<Number>(first + i);
    bits.some |= int(unsigned(known.some) << i);
    bits.all |= int(unsigned(known.all) << i);
  }
  return bits;
}

} // namespace attn
