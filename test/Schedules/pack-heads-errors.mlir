// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heads share no tile under a mask that is not the same for all of them: refused where it was asked
// for, and not chosen where it was not.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %s

// CHECK-LABEL: tile.kernel @alike
// CHECK-SAME: pack_heads = 4
attn.problem @alike mask(#attn.causal<bottom_right>) layout(bshd) heads(8, 2) dims(64) dtype(bf16) expected_seqlen(4, 32768)
// CHECK-LABEL: tile.kernel @of_heads
// CHECK-NOT: pack_heads
// CHECK-LABEL: tile.kernel @arrays
// CHECK-NOT: pack_heads
// CHECK-LABEL: tile.kernel @asks
// CHECK-NOT: pack_heads
attn.problem @of_heads mask(#attn.heads<#attn.causal, #attn.full>) layout(bshd) heads(8, 2) dims(64) dtype(bf16) expected_seqlen(4, 32768)
attn.problem @arrays mask(#attn.not<#attn.column_interval<end = "e", per_head>>) layout(bshd) heads(8, 2) dims(64) dtype(bf16) expected_seqlen(4, 32768)
attn.problem @asks mask(#attn.and<#attn.causal, #attn.predicate<"h < 4 || k % 2 == 0">>) layout(bshd) heads(8, 2) dims(64) dtype(bf16) expected_seqlen(4, 32768)

// -----

// expected-error @below {{expected pack_heads = 1 with a mask that differs between heads, got: #tile.warp_specialized<q_tile = 128}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.predicate<"h < 4 || k % 2 == 0">>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, pack_heads = 4>)

// -----

// A warp has one head.
// expected-error @below {{expected 32 lanes with a mask that differs between heads, got: #tile.simt_rows<rows = 1, keys = 4, lanes = 16}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.predicate<"h < 4 || k % 2 == 0">>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4>)

// -----

// expected-error @below {{expected pack_heads = 1 with a mask that differs between heads, got: #tile.simt_rows<rows = 2}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.predicate<"h < 4 || k % 2 == 0">>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 32, warps = 4, ctas_per_sm = 4, pack_heads = 2>)

// -----

// expected-error @below {{expected pack_heads = 1 with a mask that differs between heads, got: #tile.cta_per_sequence<q_tile = 16}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.predicate<"h < 4 || k % 2 == 0">>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, pack_heads = 8>)

// -----

// expected-error @below {{expected pack_heads = 1 with a mask that differs between heads, got: #tile.warp_specialized<q_tile = 64}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.predicate<"h < 4 || k % 2 == 0">>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 4>>)
