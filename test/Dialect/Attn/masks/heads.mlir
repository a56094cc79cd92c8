// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.heads`: a mask for each head, or group of heads.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=5" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 4 masks
// CHECK: mask(#attn.heads<#attn.causal, #attn.full>)
// GENERIC: mask = #attn.heads<#attn.causal, #attn.full>,
attn.problem @m0 mask(#attn.heads<#attn.causal, #attn.full>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.heads<#attn.or<#attn.prefix<2>, #attn.band<left = 2, right = 0>>, #attn.prefix<"n">, #attn.document, #attn.chunk<2>>)
// GENERIC: mask = #attn.heads<#attn.or<#attn.prefix<2>, #attn.band<left = 2, right = 0>>, #attn.prefix<"n">, #attn.document, #attn.chunk<2>>,
attn.problem @m1 mask(#attn.heads<#attn.or<#attn.prefix<2>, #attn.band<left = 2, right = 0>>, #attn.prefix<"n">, #attn.document, #attn.chunk<2>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.heads<#attn.heads<#attn.prefix<2>, #attn.causal>, #attn.band<left = 1>>>)
// GENERIC: mask = #attn.not<#attn.heads<#attn.heads<#attn.prefix<2>, #attn.causal>, #attn.band<left = 1>>>,
attn.problem @m2 mask(#attn.not<#attn.heads<#attn.heads<#attn.prefix<2>, #attn.causal>, #attn.band<left = 1>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.causal<bottom_right>, #attn.heads<#attn.prefix<3>, #attn.prefix<"n">>>)
// GENERIC: mask = #attn.and<#attn.causal<bottom_right>, #attn.heads<#attn.prefix<3>, #attn.prefix<"n">>>,
attn.problem @m3 mask(#attn.and<#attn.causal<bottom_right>, #attn.heads<#attn.prefix<3>, #attn.prefix<"n">>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: at least two masks.
// expected-error @below {{expected at least two masks in `#attn.heads`, got: 1}}
attn.problem @p mask(#attn.heads<#attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C3: their number divides the heads: C5 of the problem, test/Dialect/Attn/problem-errors.mlir.
// expected-error @below {{expected a number of masks that divides the 8 query heads, got: 3}}
attn.problem @p mask(#attn.heads<#attn.causal, #attn.full, #attn.prefix<3>>) layout(bshd) heads(8) dims(64) dtype(bf16)
