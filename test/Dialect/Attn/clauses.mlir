// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clauses in any order; printed in one. What stands behind an op is none: another op, a location, the end of a module.
//
// RUN: attn-opt %s | attn-opt | FileCheck %s --match-full-lines
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s --match-full-lines
// RUN: attn-opt %s -mlir-print-debuginfo | attn-opt | FileCheck %s --match-full-lines

// Each one, last first.
//      CHECK: attn.problem @all mask(#attn.causal) layout(thd padded) heads(4, 2) dims(64, 128) dtype(bf16) scale(1.250000e-01) score([#attn.alibi]) sink(0.000000e+00) dropout(1.000000e-01, "seed") outputs(o) expected_seqlen(16) max_seqlen(4, 16) kv_list_capacity(512) tiles(64) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)
attn.problem @all schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) tiles(64) kv_list_capacity(512)
  max_seqlen(4, 16) expected_seqlen(16) outputs(o) dropout(0.1, "seed") sink(0.0) score([#attn.alibi]) scale(0.125)
  dtype(bf16) dims(64, 128) heads(4, 2) layout(thd padded) mask(#attn.causal)
// CHECK-NEXT: attn.problem @ids mask(#attn.causal) layout(thd padded) heads(2) dims(64) dtype(f16) segments(4)
attn.problem @ids segments(4) outputs(o, lse) mask(#attn.causal) dtype(f16) layout(thd padded) heads(2) dims(64) loc("here":1:2)
// CHECK-NEXT: attn.problem @q mask(#attn.full) layout(bshd) heads(2) dims(64) dtype(f16) score([#attn.bias<"bias", h>]) {sym_visibility = "private"}
attn.problem @q score([#attn.bias<"bias", h>]) mask(#attn.full) layout(bshd) heads(2) dims(64) dtype(f16) {sym_visibility = "private"}
// CHECK-NEXT: attn.backward @g of(@q) deterministic dlse requires_grad(["bias"]) schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)
attn.backward @g schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) requires_grad(["bias"]) dlse deterministic of(@q)
// CHECK-NEXT: attn.segments @s mask(#attn.full) segments(4) maps tiles(64)
attn.segments @s tiles(64) maps segments(4) mask(#attn.full)
module @inside {
  attn.segments @t segments(4) mask(#attn.full)
}

// Score modifiers need no brackets.
// CHECK: attn.problem @one {{.*}} score([#attn.alibi])
attn.problem @one mask(#attn.full) layout(bshd) heads(2) dims(64) dtype(f16) score(#attn.alibi)
// CHECK: attn.problem @two {{.*}} score([#attn.softcap<2.000000e+01>, #attn.alibi])
attn.problem @two mask(#attn.full) layout(bshd) heads(2) dims(64) dtype(f16) score(#attn.softcap<20.0>, #attn.alibi)
