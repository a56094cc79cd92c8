// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.relative_bias`: a number of the distance from the diagonal is added.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: score([#attn.relative_bias<"table", 128>])
// GENERIC: score = [#attn.relative_bias<"table", 128>]
attn.problem @p0 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.relative_bias<"table", 128>])
// CHECK: score([#attn.relative_bias<"table", 1048576, bottom_right>])
// GENERIC: score = [#attn.relative_bias<"table", 1048576, bottom_right>]
attn.problem @p1 mask(#attn.causal) layout(thd padded) heads(8, 2) dims(64) dtype(bf16) score([#attn.relative_bias<"table", 1048576, bottom_right>])

// -----

// C1: the name is an identifier.
// expected-error @below {{expected an identifier as the name of an array of biases, got: "a-b"}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.relative_bias<"a-b", 4>])

// -----

// C2: R is from 1 to 2^20.
// expected-error @below {{expected the largest distance of a relative bias from 1 to 2^20, got: 0}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.relative_bias<"t", 0>])

// -----

// C2
// expected-error @below {{expected the largest distance of a relative bias from 1 to 2^20, got: 1048577}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.relative_bias<"t", 1048577>])

// -----

// expected-error @below {{expected ','}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.relative_bias<"t">])
