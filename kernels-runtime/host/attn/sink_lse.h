// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host function of the kernel that follows attention over segments with a sink, as device/attn/epilogue/sink_lse.cuh.
#pragma once

#include "attn/prelude.h"

namespace attn {

ATTN_TILE_OP void store_sink_lse(float *lse, int row0, int rows, const int *ids, int tokens, int segments,
                                 const int *cu_seqlens, const int *offsets, int batch, float sink,
                                 const int *positions = nullptr, int position_rows = 1) {
  constexpr int far = 1 << 29;
  int b = -1; // the last sequence that begins at or before the token
  for (int t = row0; t < row0 + rows; ++t) {
    while (b + 1 < batch && offsets[b + 1] <= t)
      ++b;
    const int p = positions ? positions[(long long)(t / tokens % position_rows) * tokens + t % tokens] : 0;
    const bool counts = ids[t] > 0 && ids[t] <= segments && p <= far && p >= -far;
    if (counts && (b < 0 || t - offsets[b] >= cu_seqlens[b + 1] - cu_seqlens[b]))
      lse[t - row0] = sink;
  }
}

} // namespace attn
