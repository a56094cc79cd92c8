// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps: a bit for each pair of a row and a column of blocks, made of lists.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

// A warp has rows `first`, `first + step`, ... Each lane empties words of its own before any of them sets bits.
ATTN_INLINE void mark_blocks(int *bits, int rows, int words, const int *offsets, const int *columns, int entries, int lines, int first, int step) {
  for (long long row = first; row < (long long)lines * rows; row += step) {
    unsigned *const own = (unsigned *)bits + row * words;
    for (int i = lane_index(); i < words; i += 32) own[i] = 0;
    __threadfence_block();
    __syncwarp();
    const int *const list = offsets + row + row / rows;
    const int begin = min(max(list[0], 0), entries), end = min(list[1], entries);
    for (int i = begin + lane_index(); i < end; i += 32) {
      const unsigned column = columns[i];
      if (column / 32 < (unsigned)words) atomicOr(own + column / 32, 1u << column % 32);
    }
  }
}

ATTN_INLINE unsigned word_of(const int *bits, int rows, int words, int row, int word) {
  return row < rows && word < words ? (unsigned)__ldg(bits + (long long)row * words + word) : 0u;
}
ATTN_INLINE bool listed(const int *bits, int rows, int words, int row, int column) {
  return word_of(bits, rows, words, row, column >> 5) >> (column & 31) & 1;
}

// Those of word `word` that are among columns from `column` to `end`.
ATTN_INLINE unsigned bits_between(int word, int column, int end) {
  const int low = max(column - 32 * word, 0), behind = min(end - 32 * word, 32);
  return ~0u >> (32 - behind) & ~0u << low;
}
ATTN_INLINE bool any_listed(const int *bits, int rows, int words, int row, int row_end, int column, int column_end) {
  unsigned some = 0;
  for (int r = row; r < row_end; ++r)
    for (int w = column >> 5; w <= (column_end - 1) >> 5; ++w) some |= word_of(bits, rows, words, r, w) & bits_between(w, column, column_end);
  return some != 0;
}
ATTN_INLINE bool all_listed(const int *bits, int rows, int words, int row, int row_end, int column, int column_end) {
  unsigned missing = 0;
  for (int r = row; r < row_end; ++r)
    for (int w = column >> 5; w <= (column_end - 1) >> 5; ++w) missing |= ~word_of(bits, rows, words, r, w) & bits_between(w, column, column_end);
  return missing == 0;
}

}  // namespace attn
