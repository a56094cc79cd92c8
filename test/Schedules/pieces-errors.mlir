// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules that cannot compute pieces of sequences.
//
// RUN: attn-opt %s -split-input-file -attn-choose-schedule=target=sm_90a -verify-diagnostics

// expected-error @below {{expected tiles of a grid with layout(thd pieces), got: #tile.simt_rows<}}
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(4) dims(64) dtype(bf16)
  schedule(#tile.simt_rows<rows = 1, keys = 1, lanes = 8, warps = 1, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected pack_heads = 1 with layout(thd pieces), got: #tile.warp_specialized<}}
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, pack_heads = 2>)

// -----

attn.problem @p mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected separate dQ accumulation with several pieces of a sequence, got: #tile.backward_kernels<}}
attn.backward @g of(@p) schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>>)
