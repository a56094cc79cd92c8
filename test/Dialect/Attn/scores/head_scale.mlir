// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.head_scale`: scores are multiplied by a number of their head.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: score([#attn.head_scale<"t">])
// GENERIC: score = [#attn.head_scale<"t">]
attn.problem @p0 mask(#attn.causal) layout(thd) heads(8, 2) dims(64) dtype(bf16) score([#attn.head_scale<"t">])

// -----

// C1: the name is an identifier.
// expected-error @below {{expected an identifier as the name of an array of factors, got: "1t"}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.head_scale<"1t">])

// -----

// One of a kind.
// expected-error @below {{expected at most one score modifier of this kind, got: #attn.head_scale<"u"> once more}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.head_scale<"t">, #attn.head_scale<"u">])

// -----

// expected-error @below {{expected '<'}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.head_scale])
