// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists the work tiles of those sequences of a packed batch that satisfy a predicate. One CTA does this, since it is a
// prefix sum over sequences.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// Each thread has several sequences of an iteration, whose loads are in flight together. A prefix sum over threads
// gives the places in the list. Work tiles are numbered as in find_sequence().
template <int Rows, class F>
ATTN_INLINE void list_work_tiles(int *list, int *count, const int *offsets, int batch, F is_listed) {
  constexpr int Own = 16;
  if (block_index() != 0)
    return;
  int used = 0;
  for (int base = 0; base < batch; base += blockDim.x * Own) {
    int first[Own], slots[Own], own = 0;
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      slots[i] = 0;
      if (base + i * blockDim.x >= batch)
        continue; // uniform for all threads
      const int b = base + i * blockDim.x + threadIdx.x, at = min(b, batch - 1), begin = offsets[at],
                end = offsets[at + 1];
      first[i] = begin / Rows + at + 1;
      if (b < batch & is_listed(at))
        slots[i] = (end - begin + Rows - 1) / Rows;
      own += slots[i];
    }
    int all, place = used + sum_before_thread<Rows * 0>(own, all);
    used += all;
#pragma unroll
    for (int i = 0; i < Own; ++i)
      for (int slot = 0; slot < slots[i]; ++slot, ++place)
        list[place] = first[i] + slot;
  }
  if (threadIdx.x == 0)
    *count = used;
}

} // namespace attn
