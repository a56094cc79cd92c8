// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts: as keywords of a problem and as attributes.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: @bshd mask(#attn.full) layout(bshd) heads
attn.problem @bshd mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: layout(sbhd) heads
attn.problem @sbhd mask(#attn.full) layout(sbhd) heads(8) dims(64) dtype(bf16)
// CHECK: layout(bhsd) heads
attn.problem @bhsd mask(#attn.full) layout(bhsd) heads(8) dims(64) dtype(bf16)
// CHECK: layout(thd) heads
attn.problem @thd mask(#attn.full) layout(thd) heads(8) dims(64) dtype(bf16)
// CHECK: layout(thd padded) heads
attn.problem @padded mask(#attn.full) layout(thd padded) heads(8) dims(64) dtype(bf16)

// C4 asks for alike, not for the same: any dense with any dense, and queries
// and keys are free of each other.
// CHECK: layout(bshd, sbhd, bhsd, sbhd) heads
attn.problem @all_dense mask(#attn.full) layout(bshd, sbhd, bhsd, sbhd) heads(8) dims(64) dtype(bf16)
// CHECK: layout(bshd, thd padded, thd padded, bhsd) heads
attn.problem @paged_like mask(#attn.full) layout(bshd, thd padded, thd padded, bhsd) heads(8) dims(64) dtype(bf16)
// CHECK: layout(thd, sbhd, sbhd, thd) heads
attn.problem @packed_queries mask(#attn.full) layout(thd, sbhd, sbhd, thd) heads(8) dims(64) dtype(bf16)
// CHECK: layout(thd, thd padded, thd padded, thd) heads
attn.problem @two_packings mask(#attn.full) layout(thd, thd padded, thd padded, thd) heads(8) dims(64) dtype(bf16)

// CHECK: module attributes {attn.a = #attn.layout<bshd>, attn.b = #attn.layout<sbhd>, attn.c = #attn.layout<bhsd>, attn.d = #attn.layout<thd>, attn.e = #attn.layout<thd padded>}
module attributes {attn.a = #attn.layout<bshd>, attn.b = #attn.layout<sbhd>, attn.c = #attn.layout<bhsd>,
                   attn.d = #attn.layout<thd>, attn.e = #attn.layout<thd padded>} {}

// GENERIC: k_layout = #attn.layout<thd padded>{{.*}}q_layout = #attn.layout<bshd>, sym_name = "paged_like", v_layout = #attn.layout<thd padded>

// -----

// C1: `padded` goes with `thd` only.
// expected-error @below {{`padded` goes with layout `thd`, got: bshd}}
module attributes {attn.layout = #attn.layout<bshd padded>} {}

// -----

// C1, as a keyword.
// expected-error @below {{`padded` goes with layout `thd`, got: sbhd}}
attn.problem @p mask(#attn.full) layout(sbhd padded) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected layout `bshd`, `sbhd`, `bhsd` or `thd`, got: hbsd}}
module attributes {attn.layout = #attn.layout<hbsd>} {}

// -----

// expected-error @below {{expected '>'}}
module attributes {attn.layout = #attn.layout<thd, padded>} {}
