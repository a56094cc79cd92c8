// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which slots of a packed layout some of its sequences have.
#pragma once

#include "attn/prelude.h"

namespace attn {

template <int Rows, class F>
ATTN_HELPER void list_slots(int *list, int *count, const int *offsets, int batch, F listed) {
  if (block_index() != 0)
    return;
  int used = 0;
  for (int b = 0; b < batch; ++b) {
    if (!listed(b))
      continue;
    const int begin = offsets[b], end = offsets[b + 1];
    for (int slot = 0; slot < (end - begin + Rows - 1) / Rows; ++slot)
      list[used++] = begin / Rows + b + 1 + slot;
  }
  *count = used;
}

} // namespace attn
