// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of arrays: after the other kernels, tiles of dS times the derivative of a score by an entry, and sums of these.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize | FileCheck %s

// One of rows and keys is written by the kernel that has the tiles.
// CHECK-LABEL: tile.kernel @biased_preprocess
// CHECK-LABEL: tile.kernel @biased_dbias(
// CHECK-SAME: %dbias: !tile.ptr<f32>
// CHECK-SAME: target("sm_80") grid(packed heads 4 tiles 32)
// CHECK: scf.for %cell
// CHECK: tile.clear %acc
// The heads share it.
// CHECK: scf.for %h
// CHECK: tile.probabilities %s, %stats at({{.*}}) weighted(%weighted
// CHECK: tile.grad_scores %dp, %weighted, %stats
// CHECK: tile.accumulate %acc, %dp
// CHECK: tile.store_corner %{{.*}} stride(%{{.*}}) rows(%{{.*}}) cols(%{{.*}}), %acc
attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", bqk>])
attn.backward @biased of(@p) requires_grad(["bias"])

// -----

// A table's sums go along tiles that are as far from the diagonal.
// CHECK-LABEL: tile.kernel @grads_dtable_parts(
// CHECK: scf.for %j
// CHECK: scf.for %i
// CHECK: tile.store_sums
// CHECK-LABEL: tile.kernel @grads_dtable(
// CHECK: tile.clear
// CHECK: scf.for %b
// CHECK: tile.add_total
// CHECK: tile.add_total
// CHECK-LABEL: tile.kernel @grads_dsinks(
// CHECK: tile.clear
// CHECK: tile.add_sink_grad
attn.problem @p mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16) score([#attn.relative_bias<"table", 128>]) sink("sinks")
attn.backward @grads of(@p) requires_grad(["table", "sinks"])

// -----

// With pieces, a table's tiles of keys begin as far from those of a piece of queries, also before a piece of keys, whose
// first key is then tested. Distances before and behind the table, and those of it, have sums of all sequences.
// CHECK-LABEL: tile.kernel @of_pieces_dt_parts(
// CHECK: tile.copy_async %K, %k_rows stride(%k_row) rows(%{{[0-9]+}}) dim 64
// CHECK-LABEL: tile.kernel @of_pieces_dtable_parts(
// CHECK-SAME: grid(packed heads 2 tiles 32)
// CHECK: scf.for %{{.*}} to %diagonals
// CHECK: tile.copy_async %K, %k_rows stride(%k_row) rows(%{{.*}} from %{{.*}}) dim 64
// CHECK: tile.apply_mask
// CHECK: arith.cmpi sle, %k_position, %k
// CHECK: tile.store_sums %{{.*}}, %acc : !tile.ptr<f32>, !tile.frag<32x32, 2>
// CHECK: tile.store_sums %{{.*}}, %acc : !tile.ptr<f32>, !tile.frag<32x32, 2>
// CHECK: scf.for %m
// CHECK: scf.for %b
// CHECK: tile.store_sums %{{.*}}, %acc pitch(%{{.*}}) through(%scratch
// What is added to may be in the same memory; heads of which the problem has none are copied.
// CHECK-LABEL: tile.kernel @of_pieces_dtable(
// CHECK: tile.copy_number
// CHECK: scf.if
// CHECK-COUNT-4: tile.add_total
attn.problem @p mask(#attn.full) layout(thd pieces) heads(2, 1) dims(64) dtype(bf16) of_heads(2, 8, 4)
  score([#attn.head_scale<"t">, #attn.relative_bias<"table", 128>])
attn.backward @of_pieces of(@p) add_array_grads requires_grad(["table", "t"])

// -----

// SIMT rows have no gradients of arrays: tiles have them, whatever max_seqlen says.
// CHECK-LABEL: tile.kernel @short_preprocess
// CHECK-LABEL: tile.kernel @short_dt(
attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16) score([#attn.head_scale<"t">]) max_seqlen(4, 8)
attn.backward @short of(@p) requires_grad(["t"])

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 4) dims(64) dtype(bf16) score([#attn.head_scale<"t">]) max_seqlen(4, 8)
// expected-error @below {{expected a schedule with tiles of a grid with requires_grad, got: #tile.simt_rows<}}
attn.backward @short of(@p) requires_grad(["t"])
  schedule(#tile.simt_rows<rows = 2, keys = 2, lanes = 8, warps = 4, ctas_per_sm = 1>)

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 4) dims(512) dtype(bf16) score([#attn.head_scale<"t">]) max_seqlen(4, 8)
// expected-error @below {{expected head dims up to 256 with requires_grad, got: dim 512}}
attn.backward @wide of(@p) requires_grad(["t"])
