// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists the work tiles of those sequences of a packed batch that satisfy a predicate.
#pragma once

#include "attn/prelude.h"

namespace attn {

template <int Rows, class F>
ATTN_HELPER void list_work_tiles(int *list, int *count, const int *offsets, int batch, F is_listed) {
  if (block_index() != 0)
    return;
  int used = 0;
  for (int b = 0; b < batch; ++b) {
    if (!is_listed(b))
      continue;
    const int begin = offsets[b], end = offsets[b + 1];
    for (int slot = 0; slot < (end - begin + Rows - 1) / Rows; ++slot)
      list[used++] = begin / Rows + b + 1 + slot;
  }
  *count = used;
}

} // namespace attn
