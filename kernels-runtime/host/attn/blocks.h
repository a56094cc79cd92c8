// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps: a bit for each pair of a row and a column of blocks, made of
// lists.
#pragma once

#include "attn/prelude.h"

namespace attn {

ATTN_HELPER void mark_blocks(int *bits, int rows, int words, const int *offsets,
                             const int *columns, int entries, int lines,
                             int first, int step) {
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

ATTN_HELPER bool listed(const int *bits, int rows, int words, int row,
                        int column) {
  return row < rows && column / 32 < words &&
         ((unsigned)bits[(long long)row * words + column / 32] >>
              column % 32 &
          1);
}

ATTN_HELPER bool listed_near(const int *bits, int rows, int words, int row,
                             int column, int first) {
  return column - first < 32 && listed(bits, rows, words, row, column);
}

// What `gathered` asks of: the bits themselves, of rows, or turned of columns,
// of blocks.
struct GatheredBlocks {
  const int *bits;
  int rows, words, begin, end, tile, size;
  bool turned;
};
template <int Number> ATTN_HELPER GatheredBlocks &gathered_blocks() {
  static thread_local GatheredBlocks blocks;
  return blocks;
}

template <int Number, int Tile, int Size, bool Turned>
ATTN_HELPER void gather_blocks(const int *bits, int rows, int words, int begin,
                               int end, int, int) {
  gathered_blocks<Number>() = {bits, rows, words, begin, end, Tile, Size, Turned};
}

struct Listed {
  bool some, all;
};
template <int Number> ATTN_HELPER Listed gathered(int tile) {
  const GatheredBlocks &blocks = gathered_blocks<Number>();
  const long long from = (long long)tile * blocks.tile;
  const int first = from / blocks.size, last = (from + blocks.tile - 1) / blocks.size;
  Listed known = {false, true};
  for (int own = blocks.begin; own < blocks.end; ++own)
    for (int other = first; other <= last; ++other) {
      const bool is = blocks.turned ? listed(blocks.bits, blocks.rows, blocks.words, other, own)
                                    : listed(blocks.bits, blocks.rows, blocks.words, own, other);
      known = {known.some || is, known.all && is};
    }
  return known;
}
struct ListedBits {
  int some, all;
};
template <int Number> ATTN_HELPER ListedBits gathered_bits(int first) {
  ListedBits bits = {0, 0};
  for (int i = max(-first, 0); i < 32; ++i) {
    const Listed known = gathered<Number>(first + i);
    bits.some |= int(unsigned(known.some) << i);
    bits.all |= int(unsigned(known.all) << i);
  }
  return bits;
}

} // namespace attn
