// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.tree`: a row sees its ancestors in a tree, and itself.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 1 masks
// CHECK: mask(#attn.tree<"node", "first", "end">)
// GENERIC: mask = #attn.tree<"node", "first", "end">,
attn.problem @m0 mask(#attn.tree<"node", "first", "end">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: the three names are identifiers, all different.
// expected-error @below {{expected an identifier as the name of an array of a tree's nodes, got: ""}}
attn.problem @p mask(#attn.tree<"node", "", "end">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected different names for arrays of a tree's nodes, got: "node" twice}}
attn.problem @p mask(#attn.tree<"node", "first", "node">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected ','}}
attn.problem @p mask(#attn.tree<"node", "first">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '<'}}
attn.problem @p mask(#attn.tree) layout(bshd) heads(8) dims(64) dtype(bf16)
