// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a block finds its rows and keys: dense, packed, padded and mixed layouts.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile | FileCheck %s

// The dense layouts are one kernel: they differ in strides alone.
// CHECK-LABEL: tile.kernel @dense
// CHECK-SAME: %batch: i32, %seqlen_q: i32, %seqlen_kv: i32, %q_batch: i64
// CHECK-SAME: grid(dense heads 8)
// CHECK-NOT: tile.find_sequence
// CHECK-NOT: scf.if
// CHECK: tile.kv_loop
attn.problem @dense mask(#attn.causal) layout(sbhd, bhsd, bshd, bhsd) heads(8) dims(64) dtype(bf16)

// Packed: a search over the prefix sums, the sequence's own lengths, padding slots.
// CHECK-LABEL: tile.kernel @packed
// CHECK-SAME: %lse: !tile.ptr<f32>, %cu_seqlens_q: !tile.ptr<i32>, %cu_seqlens_kv: !tile.ptr<i32>, %batch: i32, %total_q: i32, %q_row: i64, %q_head: i64, %k_row: i64, %k_head: i64, %v_row: i64, %v_head: i64, %o_row: i64, %o_head: i64, %lse_head: i64)
// CHECK-SAME: grid(packed heads 8)
// CHECK: %b, %q0, %first, %rows, %write_rows = tile.find_sequence %{{.*}} in %cu_seqlens_q, %cu_seqlens_q, %batch, %total_q
// CHECK: tile.load uniform %cu_seqlens_kv[%b]
// CHECK: %[[NONE:.*]] = arith.cmpi sle, %rows, %{{.*}}
// CHECK: scf.if %[[NONE]] {
// CHECK: tile.store_padding %{{.*}} stride(%o_row) rows(%write_rows) dim 64 : !tile.ptr<bf16>
// CHECK: tile.store_padding %{{.*}} rows(%write_rows) dim 1 : !tile.ptr<f32>
// CHECK: %[[LIVE:.*]] = arith.cmpi slt, %{{.*}}, %rows
// CHECK: scf.if %[[LIVE]] {
// CHECK: tile.copy_async %Q, %{{.*}} stride(%q_row) rows(%rows)
// CHECK: tile.kv_loop
// CHECK: tile.store %{{.*}} rows(%rows, %write_rows)
// CHECK: tile.store_lse %{{.*}} rows(%rows, %write_rows)
attn.problem @packed mask(#attn.causal) layout(thd) heads(8) dims(64) dtype(bf16)

// Padded: rows and keys start where their offsets say.
// CHECK-LABEL: tile.kernel @padded
// CHECK-SAME: %cu_seqlens_q: !tile.ptr<i32>, %padded_offsets_q: !tile.ptr<i32>, %cu_seqlens_kv: !tile.ptr<i32>, %padded_offsets_kv: !tile.ptr<i32>, %batch: i32
// CHECK: tile.find_sequence %{{.*}} in %cu_seqlens_q, %padded_offsets_q, %batch, %total_q
// CHECK: tile.load uniform %padded_offsets_kv[%b]
attn.problem @padded mask(#attn.causal) layout(thd padded) heads(8) dims(64) dtype(bf16)

// Dense queries, packed keys (one query per sequence against a cache).
// CHECK-LABEL: tile.kernel @packed_keys
// CHECK-SAME: %cu_seqlens_kv: !tile.ptr<i32>, %padded_offsets_kv: !tile.ptr<i32>, %batch: i32, %seqlen_q: i32, %q_batch: i64, %q_row: i64, %q_head: i64, %k_row: i64, %k_head: i64
// CHECK-SAME: grid(dense heads 8)
// CHECK-NOT: tile.find_sequence
// CHECK: tile.load uniform %padded_offsets_kv[
// CHECK: tile.load uniform %cu_seqlens_kv[
attn.problem @packed_keys mask(#attn.causal<bottom_right>) layout(bshd, thd padded, thd padded, bshd) heads(8) dims(64)
  dtype(bf16)

// Packed queries, dense keys.
// CHECK-LABEL: tile.kernel @packed_queries
// CHECK-SAME: %cu_seqlens_q: !tile.ptr<i32>, %batch: i32, %total_q: i32, %seqlen_kv: i32, %q_row: i64, %q_head: i64, %k_batch: i64
// CHECK-SAME: grid(packed heads 8)
// CHECK: tile.find_sequence %{{.*}} in %cu_seqlens_q, %cu_seqlens_q, %batch, %total_q
attn.problem @packed_queries mask(#attn.full) layout(thd, bshd, bshd, thd) heads(8) dims(64) dtype(bf16)

// Heads: of groups of 4, all of one, each its own.
// CHECK-LABEL: tile.kernel @gqa
// CHECK: %[[H:.*]] = arith.remui %{{.*}}, %c8_i32
// CHECK: arith.divui %[[H]], %c4_i32
attn.problem @gqa mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
