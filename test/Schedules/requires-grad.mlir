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
