// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The LSE of tokens in no sequence, which the kernel after attention over segments with a sink stores.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// Stores the LSE of tokens [row0, row0 + rows), counted through all batch rows, one thread a token. Only the sink is
// visible to a valid token that is in no sequence, so its LSE is the sink; the preceding attention kernel has treated
// it as padding. Sequences ascend; those without tokens come last, behind all tokens.
ATTN_INLINE void store_sink_lse(float *lse, int row0, int rows, const int *ids, int tokens, int segments,
                                const int *cu_seqlens, const int *offsets, int batch, float sink,
                                const int *positions = nullptr, int position_rows = 1) {
  constexpr int far = 1 << 29; // as kFar in metadata/segment_table.cuh
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    const int t = row0 + i, id = ids[t];
    if (id <= 0 || id > segments)
      continue;
    if (positions) { // a token with an out-of-range position is padding
      const int p = positions[(long long)(t / tokens % position_rows) * tokens + t % tokens];
      if (p > far || p < -far)
        continue;
    }
    int before = -1; // the last sequence that begins at or before the token
    for (int end = batch; end - before > 1;) {
      const int b = before + (end - before) / 2;
      (offsets[b] <= t ? before : end) = b;
    }
    if (before < 0 || t - offsets[before] >= cu_seqlens[before + 1] - cu_seqlens[before])
      lse[i] = sink;
  }
}

} // namespace attn
