// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of tensors in another order, or sums of rows: tile.gather_rows.
#pragma once
#include "attn/numbers.h"

namespace attn {

// A part: its rows, and the strides of rows and heads.
template <class T> struct Part {
  const T *rows;
  long long row, head;
};
template <class T> ATTN_HELPER Part<T> part_of(const T *rows, long long row, long long head) {
  return {rows, row, head};
}

template <int Heads, int Dim, int Threads, class T, class First, class... Rest>
ATTN_TILE_OP void gather_rows(T *result, long long row, long long head, const int *index, int total, int first,
                              int rows, Part<First> part, Part<Rest>... rest) {
  for (int r = first; r < first + rows; ++r)
    for (int h = 0; h < Heads; ++h)
      for (int c = 0; c < Dim; ++c) {
        T &to = result[r * row + h * head + c];
        if constexpr (sizeof...(Rest) == 0 && sizeof(T) == sizeof(First)) { // as they are
          const int from = index[r];
          if (from < 0)
            to = T{};
          else
            __builtin_memcpy(&to, part.rows + from * part.row + h * part.head + c, sizeof(T));
        } else {
          float sum = 0;
          int number = 0;
          auto add = [&](auto own) {
            const int from = index[(long long)number++ * total + r];
            if (from >= 0)
              sum += to_float(own.rows[from * own.row + h * own.head + c]);
          };
          add(part);
          (add(rest), ...);
          round_to(to, sum);
        }
      }
}

} // namespace attn
