// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.causal`: a row sees the keys up to its diagonal. It has no constraints.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=8" | FileCheck %s --check-prefix=LAWS

// CHECK: mask(#attn.causal)
// GENERIC: mask = #attn.causal,
// LAWS: mask laws hold for 3 masks
attn.problem @top_left mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16)
// The default need not be said.
// CHECK: mask(#attn.causal)
// GENERIC: mask = #attn.causal,
attn.problem @said mask(#attn.causal<top_left>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.causal<bottom_right>)
// GENERIC: mask = #attn.causal<bottom_right>,
attn.problem @bottom_right mask(#attn.causal<bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected `top_left` or `bottom_right`, got: center}}
attn.problem @p mask(#attn.causal<center>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected valid keyword}}
attn.problem @p mask(#attn.causal<>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '>'}}
attn.problem @p mask(#attn.causal<top_left, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
