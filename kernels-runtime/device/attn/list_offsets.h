// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Offsets of lists of one width, as block maps have them (block_map.cuh).
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// A CTA has 4 * Threads of `all` offsets. Each of several arrays has `entries` of them, one more than lists.
template <int Threads> ATTN_INLINE void list_offsets(int *offsets, int cta, int all, int entries, int width) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int i = (cta * 4 + n) * Threads + threadIdx.x;
    if (i < all)
      offsets[i] = (i / entries * (entries - 1) + i % entries) * width;
  }
}

} // namespace attn
