// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.strided`: a row sees every n-th key, counted from its diagonal.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=9" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 12 masks
// CHECK: mask(#attn.strided<stride = 3>)
// GENERIC: mask = #attn.strided<stride = 3>,
attn.problem @three mask(#attn.strided<stride = 3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.strided<stride = 3, offset = 2, bottom_right>)
// GENERIC: mask = #attn.strided<stride = 3, offset = 2, bottom_right>,
attn.problem @offset mask(#attn.strided<stride = 3, offset = 2, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Items stand in any order.
// CHECK: mask(#attn.strided<stride = 4, offset = 1, bottom_right>)
attn.problem @order mask(#attn.strided<bottom_right, offset = 1, stride = 4>) layout(bshd) heads(8) dims(64) dtype(bf16)
// The default need not be said.
// CHECK: mask(#attn.strided<stride = 2>)
attn.problem @zero mask(#attn.strided<stride = 2, offset = 0>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.strided<stride = 2, offset = 1, bottom_right>)
attn.problem @two_br mask(#attn.strided<stride = 2, offset = 1, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.strided<stride = 5, offset = 3>)
attn.problem @five mask(#attn.strided<stride = 5, offset = 3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.strided<stride = 7, bottom_right>)
attn.problem @seven_br mask(#attn.strided<stride = 7, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// The ends of C1: every key, and at most one.
// CHECK: mask(#attn.strided<stride = 1>)
attn.problem @all mask(#attn.strided<stride = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.strided<stride = 1, bottom_right>)
attn.problem @all_br mask(#attn.strided<stride = 1, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.strided<stride = 536870912, offset = 2>)
attn.problem @one mask(#attn.strided<stride = 536870912, offset = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.strided<stride = 536870912, offset = 536870911, bottom_right>)
attn.problem @one_br mask(#attn.strided<stride = 536870912, offset = 536870911, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// A dilated window.
// CHECK: mask(#attn.and<#attn.strided<stride = 3>, #attn.band<left = 6, right = 0>>)
attn.problem @dilated mask(#attn.and<#attn.strided<stride = 3>, #attn.band<left = 6, right = 0>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: the stride is given, within [1, 2^29].
// expected-error @below {{expected the `stride` of a strided mask}}
attn.problem @p mask(#attn.strided<offset = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected `stride` within [1, 2^29], got: 0}}
attn.problem @p mask(#attn.strided<stride = 0>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected `stride` within [1, 2^29], got: -2}}
attn.problem @p mask(#attn.strided<stride = -2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected `stride` within [1, 2^29], got: 536870913}}
attn.problem @p mask(#attn.strided<stride = 536870913>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: the offset is within [0, stride).
// expected-error @below {{expected `offset` within [0, stride), got: 4 with stride = 4}}
attn.problem @p mask(#attn.strided<stride = 4, offset = 4>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected `offset` within [0, stride), got: -1 with stride = 4}}
attn.problem @p mask(#attn.strided<stride = 4, offset = -1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected `offset` within [0, stride), got: 9223372036854775807 with stride = 4}}
attn.problem @p mask(#attn.strided<stride = 4, offset = 9223372036854775807>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{`stride` given twice}}
attn.problem @p mask(#attn.strided<stride = 4, stride = 4>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{`offset` given twice}}
attn.problem @p mask(#attn.strided<stride = 4, offset = 1, offset = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected `stride = N`, `offset = N`, `top_left` or `bottom_right`, got: phase}}
attn.problem @p mask(#attn.strided<stride = 4, phase = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected integer value}}
attn.problem @p mask(#attn.strided<stride = wide>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1, without brackets too.
// expected-error @below {{expected '<'}}
// expected-error @below {{expected the `stride` of a strided mask}}
attn.problem @p mask(#attn.strided) layout(bshd) heads(8) dims(64) dtype(bf16)
