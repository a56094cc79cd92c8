// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.and` and `#attn.or`, which know nothing of the masks they hold.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=6" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 9 masks
// CHECK: mask(#attn.and<#attn.band<left = 3>, #attn.causal>)
// GENERIC: mask = #attn.and<#attn.band<left = 3>, #attn.causal>,
attn.problem @window mask(#attn.and<#attn.band<left = 3>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.or<#attn.prefix<2>, #attn.causal>)
// GENERIC: mask = #attn.or<#attn.prefix<2>, #attn.causal>,
attn.problem @prefix_lm mask(#attn.or<#attn.prefix<2>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.or<#attn.prefix<"p">, #attn.causal<bottom_right>>)
attn.problem @prefix_lm_array mask(#attn.or<#attn.prefix<"p">, #attn.causal<bottom_right>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Attention sinks: two intervals a row.
// CHECK: mask(#attn.and<#attn.or<#attn.prefix<1>, #attn.band<left = 2, right = 0>>, #attn.causal>)
attn.problem @sink mask(#attn.and<#attn.or<#attn.prefix<1>, #attn.band<left = 2, right = 0>>, #attn.causal>)
  layout(bshd) heads(8) dims(64) dtype(bf16)
// Three masks; the same array twice; documents.
// CHECK: mask(#attn.or<#attn.prefix<1>, #attn.prefix<"p">, #attn.band<left = -1, right = 2>>)
attn.problem @three mask(#attn.or<#attn.prefix<1>, #attn.prefix<"p">, #attn.band<left = -1, right = 2>>)
  layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.document, #attn.causal>)
attn.problem @packed mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.or<#attn.document, #attn.prefix<"p">>, #attn.prefix<"p">, #attn.document>)
attn.problem @twice mask(#attn.and<#attn.or<#attn.document, #attn.prefix<"p">>, #attn.prefix<"p">, #attn.document>)
  layout(bshd) heads(8) dims(64) dtype(bf16)
// Nothing is visible: an intersection may be empty.
// CHECK: mask(#attn.and<#attn.band<right = -3>, #attn.band<left = 1>>)
attn.problem @empty mask(#attn.and<#attn.band<right = -3>, #attn.band<left = 1>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// C2, its end: 32 deep, with the leaf.
// CHECK: @deep
attn.problem @deep mask(#attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.causal>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: at least two masks.
// expected-error @below {{expected at least two masks in `#attn.and`, got: 1}}
attn.problem @p mask(#attn.and<#attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected at least two masks in `#attn.or`, got: 1}}
attn.problem @p mask(#attn.or<#attn.prefix<4>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: nested at most 32 deep.
// expected-error @below {{expected masks nested at most 32 deep, got: 33}}
attn.problem @p mask(#attn.or<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.and<#attn.full, #attn.causal>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// Something that is no mask.
// expected-error @below {{expected a mask such as #attn.causal, got: #attn.layout<bshd>}}
attn.problem @p mask(#attn.and<#attn.layout<bshd>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected at least two masks in `#attn.or`, got: 0}}
attn.problem @p mask(#attn.or<>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// A mask nobody knows.
// expected-error @below {{unknown attribute `forest` in dialect `attn`}}
attn.problem @p mask(#attn.forest<8>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// A misspelled one.
// expected-error @below {{unknown attribute `casual` in dialect `attn`, which is near `#attn.causal`}}
attn.problem @p mask(#attn.or<#attn.prefix<3>, #attn.casual>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{unknown attribute `soft_cap` in dialect `attn`, which is near `#attn.softcap`}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.soft_cap<30.0>])

// -----

// expected-error @below {{expected '<'}}
// expected-error @below {{expected at least two masks in `#attn.and`, got: 0}}
attn.problem @p mask(#attn.and) layout(bshd) heads(8) dims(64) dtype(bf16)
