// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.pooled`: a row sees windows of keys that end at its position or before.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=9" | FileCheck %s --check-prefix=LAWS
// RUN: attn-opt %s -split-input-file -verify-diagnostics --attn-canonicalize-masks | FileCheck %s --check-prefix=SIMPLE

// LAWS: mask laws hold for 10 masks
// CHECK: mask(#attn.pooled<length = 3, stride = 2>)
// GENERIC: mask = #attn.pooled<length = 3, stride = 2>,
attn.problem @overlapping mask(#attn.pooled<length = 3, stride = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.pooled<length = 2, stride = 2>)
attn.problem @side_by_side mask(#attn.pooled<length = 2, stride = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.pooled<length = 1, stride = 3>)
attn.problem @gaps mask(#attn.pooled<length = 1, stride = 3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.pooled<length = 3, stride = 2, keys = "positions">)
// GENERIC: mask = #attn.pooled<length = 3, stride = 2, keys = "positions">,
attn.problem @of_last_rows mask(#attn.pooled<length = 3, stride = 2, keys = "positions">) layout(bshd) heads(8) dims(64) dtype(bf16)
// The ends of C1: nothing is seen, or the first key alone.
// CHECK: mask(#attn.pooled<length = 1048576, stride = 1>)
attn.problem @long mask(#attn.pooled<length = 1048576, stride = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.pooled<length = 1, stride = 1048576>)
attn.problem @far mask(#attn.pooled<length = 1, stride = 1048576>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.pooled<length = 2, stride = 1>, #attn.not<#attn.pooled<length = 4, stride = 1>>>)
attn.problem @last_two mask(#attn.and<#attn.pooled<length = 2, stride = 1>, #attn.not<#attn.pooled<length = 4, stride = 1>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Windows of one position, side by side, are keys.
// CHECK: mask(#attn.pooled<length = 1, stride = 1>)
// SIMPLE: attn.problem @keys mask(#attn.causal)
attn.problem @keys mask(#attn.pooled<length = 1, stride = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Where windows begin alike, the longer ones end later.
// SIMPLE: attn.problem @both mask(#attn.pooled<length = 5, stride = 2>)
attn.problem @both mask(#attn.and<#attn.pooled<length = 3, stride = 2>, #attn.pooled<length = 5, stride = 2>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// SIMPLE: attn.problem @either mask(#attn.pooled<length = 3, stride = 2, keys = "n">)
attn.problem @either mask(#attn.or<#attn.pooled<length = 3, stride = 2, keys = "n">, #attn.pooled<length = 5, stride = 2, keys = "n">>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: length and stride are within [1, 2^20].
// expected-error @below {{expected the length of pooled windows within [1, 2^20], got: 0}}
attn.problem @p mask(#attn.pooled<length = 0, stride = 4>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected the stride of pooled windows within [1, 2^20], got: 1048577}}
attn.problem @p mask(#attn.pooled<length = 4, stride = 1048577>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected the stride of pooled windows within [1, 2^20], got: -1}}
attn.problem @p mask(#attn.pooled<length = 4, stride = -1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: the name is an identifier.
// expected-error @below {{expected an identifier as the name of an array of numbers of positions, got: "n keys"}}
attn.problem @p mask(#attn.pooled<length = 4, stride = 4, keys = "n keys">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected 'length'}}
attn.problem @p mask(#attn.pooled<4, 4>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected ','}}
attn.problem @p mask(#attn.pooled<length = 4>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected 'keys'}}
attn.problem @p mask(#attn.pooled<length = 4, stride = 4, "n">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '>'}}
attn.problem @p mask(#attn.pooled<length = 4, stride = 4, keys = "n", 4>) layout(bshd) heads(8) dims(64) dtype(bf16)
