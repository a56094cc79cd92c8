// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.global_rows`: the first rows see every key.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 4 masks
// CHECK: mask(#attn.global_rows<3>)
// GENERIC: mask = #attn.global_rows<3>,
attn.problem @m0 mask(#attn.global_rows<3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.global_rows<0>)
// GENERIC: mask = #attn.global_rows<0>,
attn.problem @m1 mask(#attn.global_rows<0>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.global_rows<1073741824>)
// GENERIC: mask = #attn.global_rows<1073741824>,
attn.problem @m2 mask(#attn.global_rows<1073741824>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.global_rows<"counts">)
// GENERIC: mask = #attn.global_rows<"counts">,
attn.problem @m3 mask(#attn.global_rows<"counts">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: either a constant number or the name of an array is given.
// expected-error @below {{expected global rows with either a number or the name of an array}}
attn.problem @p mask(#attn.global_rows<"">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: a constant number is within [0, 2^30].
// expected-error @below {{expected the number of global rows within [0, 2^30], got: -1}}
attn.problem @p mask(#attn.global_rows<-1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected the number of global rows within [0, 2^30], got: 1073741825}}
attn.problem @p mask(#attn.global_rows<1073741825>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C3: the name is an identifier.
// expected-error @below {{expected an identifier as the name of the array of global rows, got: "4th"}}
attn.problem @p mask(#attn.global_rows<"4th">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '<'}}
attn.problem @p mask(#attn.global_rows) layout(bshd) heads(8) dims(64) dtype(bf16)
