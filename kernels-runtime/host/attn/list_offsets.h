// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Offsets of lists of one width, as block maps have them (block_map.h).
#pragma once
#include "attn/prelude.h"

namespace attn {

// A CTA has 4 * Threads of `all` offsets. Each of several arrays has `entries` of them, one more than lists.
template <int Threads> ATTN_TILE_OP void list_offsets(int *offsets, int cta, int all, int entries, int width) {
  for (int i = cta * 4 * Threads, end = min(i + 4 * Threads, all); i < end; ++i)
    offsets[i] = (i / entries * (entries - 1) + i % entries) * width;
}

} // namespace attn
