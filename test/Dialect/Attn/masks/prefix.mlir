// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.prefix`: every row sees the first keys.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 5 masks
// CHECK: mask(#attn.prefix<3>)
// GENERIC: mask = #attn.prefix<3>,
attn.problem @three mask(#attn.prefix<3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// The ends of C2; 0 sees nothing.
// CHECK: mask(#attn.prefix<0>)
attn.problem @none mask(#attn.prefix<0>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.prefix<1073741824>)
attn.problem @limit mask(#attn.prefix<1073741824>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.prefix<"prefix_lengths">)
// GENERIC: mask = #attn.prefix<"prefix_lengths">,
attn.problem @array mask(#attn.prefix<"prefix_lengths">) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.prefix<"_p9">)
attn.problem @name mask(#attn.prefix<"_p9">) layout(thd) heads(8) dims(64) dtype(bf16)

// -----

// C1: either a constant length or the name of an array is given.
// expected-error @below {{expected a prefix with either a length or the name of an array}}
attn.problem @p mask(#attn.prefix<"">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: a constant length is within [0, 2^30].
// expected-error @below {{expected the length of a prefix within [0, 2^30], got: -1}}
attn.problem @p mask(#attn.prefix<-1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected the length of a prefix within [0, 2^30], got: 1073741825}}
attn.problem @p mask(#attn.prefix<1073741825>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C3: the name is an identifier.
// expected-error @below {{expected an identifier as the name of the array of a prefix, got: "prefix-lengths"}}
attn.problem @p mask(#attn.prefix<"prefix-lengths">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C3
// expected-error @below {{expected an identifier as the name of the array of a prefix, got: "4th"}}
attn.problem @p mask(#attn.prefix<"4th">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected integer value}}
attn.problem @p mask(#attn.prefix<lengths>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '<'}}
attn.problem @p mask(#attn.prefix) layout(bshd) heads(8) dims(64) dtype(bf16)
