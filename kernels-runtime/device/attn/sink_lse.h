// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device function of the kernel that follows attention over segments with a sink.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

// One thread for each of `rows` tokens, from token `row0` of all rows on: a valid token that is in no sequence sees the
// sink alone, so its LSE is the sink. The preceding attention kernel has treated such tokens as padding. Sequences
// ascend; those without tokens come last, behind all tokens.
ATTN_INLINE void store_sink_lse(float *lse, int row0, int rows, const int *ids, int tokens, int segments,
                                const int *cu_seqlens, const int *offsets, int batch, float sink,
                                const int *positions = nullptr, int position_rows = 1) {
  constexpr int far = 1 << 29;
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
