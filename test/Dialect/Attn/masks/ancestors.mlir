// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.ancestors`: a row sees its own key and those that it follows, key by key.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 1 masks
// CHECK: mask(#attn.ancestors<"parent">)
// GENERIC: mask = #attn.ancestors<"parent">,
attn.problem @m0 mask(#attn.ancestors<"parent">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: the name is an identifier.
// expected-error @below {{expected an identifier as the name of an array of parents, got: "my parents"}}
attn.problem @p mask(#attn.ancestors<"my parents">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '>'}}
attn.problem @p mask(#attn.ancestors<"parent", "node">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// What is made of the array has names too.
// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "parent_first"}}
attn.problem @p mask(#attn.and<#attn.ancestors<"parent">, #attn.prefix<"parent_first">>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// An array of the caller's that has the shape of the made one, too.
// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "x_first"}}
attn.problem @p mask(#attn.and<#attn.ancestors<"x">, #attn.predicate<"x_first[k] > 0">>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "x_first"}}
attn.problem @p mask(#attn.and<#attn.ancestors<"x">, #attn.ancestors<"x_first">>) layout(bshd) heads(8) dims(64) dtype(bf16)
