// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problems, as people write them and as the generic form spells them.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// Defaults are not printed back: one layout for all, kv_heads = heads, dim_v =
// dim_qk, outputs o and lse.
// CHECK: attn.problem @plain mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16){{ *$}}
attn.problem @plain mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: attn.problem @spelled_out mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16){{ *$}}
attn.problem @spelled_out mask(#attn.full) layout(bshd, bshd, bshd, bshd) heads(8, 8) dims(64, 64) dtype(bf16)
  outputs(o, lse)

// GQA, MQA, d_qk != d_v, f16, a scale, no lse.
// CHECK: attn.problem @gqa mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
attn.problem @gqa mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// CHECK: attn.problem @mqa mask(#attn.causal) layout(thd padded) heads(16, 1) dims(192, 128) dtype(f16) scale(1.250000e-01) outputs(o)
attn.problem @mqa mask(#attn.causal) layout(thd padded) heads(16, 1) dims(192, 128) dtype(f16) scale(0.125) outputs(o)
// CHECK: attn.problem @scales mask(#attn.full) layout(bshd) heads(1) dims(8) dtype(f16) scale(-2.500000e+00)
attn.problem @scales mask(#attn.full) layout(bshd) heads(1) dims(8) dtype(f16) scale(-2.5)

// CHECK: attn.problem @float32 mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(f32){{ *$}}
attn.problem @float32 mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(f32)

// The ends of what is allowed.
// CHECK: heads(65536, 1) dims(256, 8)
attn.problem @widest mask(#attn.full) layout(bshd) heads(65536, 1) dims(256, 8) dtype(f16)

// A schedule and other attributes.
// CHECK: attn.problem @by_hand mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16) schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 2, ctas_per_sm = 3>)
attn.problem @by_hand mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 2, ctas_per_sm = 3>)
// How long sequences usually are comes before the schedule, and may be as long as it likes.
// CHECK: attn.problem @usual mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16) outputs(o) expected_seqlen(1){{ *$}}
attn.problem @usual mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16) outputs(o) expected_seqlen(1)
// CHECK: attn.problem @long mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16) expected_seqlen(4294967296) schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 2, ctas_per_sm = 3>)
attn.problem @long mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16) expected_seqlen(4294967296)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 2, ctas_per_sm = 3>)
// Queries and keys may differ; then both are said.
// CHECK: dtype(bf16) expected_seqlen(1, 32768){{ *$}}
attn.problem @decode mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16) expected_seqlen(1, 32768)
// CHECK: dtype(bf16) expected_seqlen(1) max_seqlen(1, 16){{ *$}}
attn.problem @bounded mask(#attn.full) layout(thd) heads(1) dims(512) dtype(bf16) expected_seqlen(1) max_seqlen(1, 16)
// CHECK: attn.problem @by_ids mask(#attn.causal) layout(thd padded) heads(1) dims(64) dtype(bf16) expected_seqlen(512) segments(64)
attn.problem @by_ids mask(#attn.causal) layout(thd padded) heads(1) dims(64) dtype(bf16) expected_seqlen(512) segments(64)
// CHECK: attn.problem @room mask(#attn.document) layout(thd) heads(1) dims(64) dtype(bf16) kv_list_capacity(4096){{ *$}}
attn.problem @room mask(#attn.document) layout(thd) heads(1) dims(64) dtype(bf16) kv_list_capacity(4096)
// CHECK: attn.problem @listed mask(#attn.causal) layout(thd) heads(1) dims(64) dtype(bf16) tiles(128)
attn.problem @listed mask(#attn.causal) layout(thd) heads(1) dims(64) dtype(bf16) tiles(128)
// CHECK: dtype(bf16) {attn.note = "why"}
attn.problem @with_note mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16) {attn.note = "why"}

// GENERIC: "attn.problem"()
// GENERIC-SAME: dim_qk = 64 : i64, dim_v = 64 : i64, dtype = bf16
// GENERIC-SAME: heads = 8 : i64, k_layout = #attn.layout<bshd>, kv_heads = 8 : i64, mask = #attn.full
// GENERIC-SAME: o_layout = #attn.layout<bshd>, q_layout = #attn.layout<bshd>, sym_name = "plain", v_layout = #attn.layout<bshd>
// GENERIC: dim_qk = 192 : i64, dim_v = 128 : i64
// GENERIC-SAME: no_lse, o_layout = #attn.layout<thd padded>
// GENERIC-SAME: scale = 1.250000e-01 : f64, sym_name = "mqa"
// GENERIC: schedule = #tile.tiled<q_tile = 64, kv_tile = 32, warps = 2, ctas_per_sm = 3>
// GENERIC: expected_seqlen_kv = 1 : i64, expected_seqlen_q = 1 : i64
// GENERIC: expected_seqlen_kv = 32768 : i64, expected_seqlen_q = 1 : i64
// GENERIC: dim_qk = 512 : i64
// GENERIC-SAME: max_seqlen_kv = 16 : i64, max_seqlen_q = 1 : i64
