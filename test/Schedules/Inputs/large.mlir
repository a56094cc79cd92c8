// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// (128 + 64 + 64) rows x 264 elements x 2 bytes = 135168 bytes of shared memory
attn.problem @large mask(#attn.causal) layout(bshd) heads(8) dims(256) dtype(bf16)
  schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 1>)
