// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verb of a kernel behind attention over segments that has a sink.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

// A thread for each of `rows` tokens, number `row0` of all rows and the next: a token with an id that is in no sequence
// sees the sink alone. What no sequence has is padding to attention, which is in front of this. Sequences ascend; those
// without tokens are the last, behind all tokens.
ATTN_INLINE void store_sinks(float *lse, int row0, int rows, const int *ids, int tokens, int segments,
                             const int *cu_seqlens, const int *offsets, int batch, float sink,
                             const int *positions = nullptr, int position_rows = 1) {
  constexpr int far = 1 << 29;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    const int t = row0 + i, id = ids[t];
    if (id <= 0 || id > segments)
      continue;
    if (positions) { // a token too far away is padding
      const int p = positions[(long long)(t / tokens % position_rows) * tokens + t % tokens];
      if (p > far || p < -far)
        continue;
    }
    int before = -1; // the last sequence that begins here or before
    for (int end = batch; end - before > 1;) {
      const int b = before + (end - before) / 2;
      (offsets[b] <= t ? before : end) = b;
    }
    if (before < 0 || t - offsets[before] >= cu_seqlens[before + 1] - cu_seqlens[before])
      lse[i] = sink;
  }
}

} // namespace attn
