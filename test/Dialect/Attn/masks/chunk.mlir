// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.chunk`: a row sees the keys of its own chunk.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=9" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 10 masks
// CHECK: mask(#attn.chunk<3>)
// GENERIC: mask = #attn.chunk<3>,
attn.problem @three mask(#attn.chunk<3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.chunk<2, bottom_right>)
// GENERIC: mask = #attn.chunk<2, bottom_right>,
attn.problem @two_br mask(#attn.chunk<2, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// The default need not be said.
// CHECK: mask(#attn.chunk<4>)
attn.problem @said mask(#attn.chunk<4, top_left>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.chunk<3, bottom_right>)
attn.problem @three_br mask(#attn.chunk<3, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.chunk<5, bottom_right>)
attn.problem @five_br mask(#attn.chunk<5, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// The ends of C1.
// CHECK: mask(#attn.chunk<1>)
attn.problem @diagonal mask(#attn.chunk<1>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.chunk<1, bottom_right>)
attn.problem @diagonal_br mask(#attn.chunk<1, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.chunk<536870912>)
attn.problem @limit mask(#attn.chunk<536870912>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Rows before the first key see nothing, in a chunk of any length.
// CHECK: mask(#attn.chunk<536870912, bottom_right>)
attn.problem @limit_br mask(#attn.chunk<536870912, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Llama 4's.
// CHECK: mask(#attn.and<#attn.chunk<3>, #attn.causal>)
attn.problem @causal mask(#attn.and<#attn.chunk<3>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: N is within [1, 2^29].
// expected-error @below {{expected the length of a chunk within [1, 2^29], got: 0}}
attn.problem @p mask(#attn.chunk<0>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected the length of a chunk within [1, 2^29], got: -3}}
attn.problem @p mask(#attn.chunk<-3>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected the length of a chunk within [1, 2^29], got: 536870913}}
attn.problem @p mask(#attn.chunk<536870913>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected the length of a chunk within [1, 2^29], got: 9223372036854775807}}
attn.problem @p mask(#attn.chunk<9223372036854775807>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{integer value too large}}
attn.problem @p mask(#attn.chunk<9223372036854775808>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected `top_left` or `bottom_right`, got: center}}
attn.problem @p mask(#attn.chunk<8, center>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected integer value}}
attn.problem @p mask(#attn.chunk<bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '>'}}
attn.problem @p mask(#attn.chunk<8, bottom_right, 8>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '<'}}
attn.problem @p mask(#attn.chunk) layout(bshd) heads(8) dims(64) dtype(bf16)
