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

struct Listed {
  bool some, all;
};
ATTN_HELPER Listed listed_in(const int *bits, int rows, int words, int row,
                             int row_end, int column, int column_end) {
  Listed known = {false, true};
  for (int r = row; r < row_end; ++r)
    for (int c = column; c < column_end; ++c) {
      const bool is = listed(bits, rows, words, r, c);
      known = {known.some || is, known.all && is};
    }
  return known;
}

} // namespace attn
