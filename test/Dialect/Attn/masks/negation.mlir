// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.not` and `#attn.diff`, which know nothing of the masks they hold.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 23 masks
// CHECK: mask(#attn.not<#attn.band<left = 1, right = 1>>)
// GENERIC: mask = #attn.not<#attn.band<left = 1, right = 1>>,
attn.problem @window mask(#attn.not<#attn.band<left = 1, right = 1>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.causal>)
// GENERIC: mask = #attn.not<#attn.causal>,
attn.problem @causal mask(#attn.not<#attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)
// No row sees anything.
// CHECK: mask(#attn.not<#attn.full>)
attn.problem @nothing mask(#attn.not<#attn.full>) layout(bshd) heads(8) dims(64) dtype(bf16)
// What is negated twice is itself, however often.
// CHECK: mask(#attn.causal)
attn.problem @twice mask(#attn.not<#attn.not<#attn.causal>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.band<left = 1, right = 1>>)
attn.problem @thrice mask(#attn.not<#attn.not<#attn.not<#attn.band<left = 1, right = 1>>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.band<left = 2, bottom_right>>)
attn.problem @left mask(#attn.not<#attn.band<left = 2, bottom_right>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.band<right = -2>>)
attn.problem @right mask(#attn.not<#attn.band<right = -2>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.prefix<0>>)
attn.problem @all mask(#attn.not<#attn.prefix<0>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.prefix<"p">>)
attn.problem @array mask(#attn.not<#attn.prefix<"p">>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.document>)
attn.problem @document mask(#attn.not<#attn.document>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.chunk<3, bottom_right>>)
attn.problem @chunk mask(#attn.not<#attn.chunk<3, bottom_right>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.strided<stride = 3, offset = 1>>)
attn.problem @strided mask(#attn.not<#attn.strided<stride = 3, offset = 1>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.strided<stride = 1>>)
attn.problem @every mask(#attn.not<#attn.strided<stride = 1>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// The complement of an `or` and of an `and`; arrays keep their order.
// CHECK: mask(#attn.not<#attn.or<#attn.prefix<1>, #attn.document, #attn.band<left = 1, right = 1>>>)
attn.problem @de_morgan mask(#attn.not<#attn.or<#attn.prefix<1>, #attn.document, #attn.band<left = 1, right = 1>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.and<#attn.prefix<"p">, #attn.document, #attn.causal>>)
attn.problem @de_morgan_and mask(#attn.not<#attn.and<#attn.prefix<"p">, #attn.document, #attn.causal>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.or<#attn.prefix<"p">, #attn.not<#attn.document>>>)
attn.problem @inside mask(#attn.not<#attn.or<#attn.prefix<"p">, #attn.not<#attn.document>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Three intervals a row, so up to four remain.
// CHECK: mask(#attn.not<#attn.or<#attn.prefix<1>, #attn.band<left = 1, right = 0>, #attn.band<left = -3, right = 4>>>)
attn.problem @sinks mask(#attn.not<#attn.or<#attn.prefix<1>, #attn.band<left = 1, right = 0>, #attn.band<left = -3, right = 4>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// `diff` is a way to write `and` with `not`.
// CHECK: mask(#attn.and<#attn.causal, #attn.not<#attn.band<left = 2>>>)
attn.problem @diff mask(#attn.diff<#attn.causal, #attn.band<left = 2>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.causal, #attn.band<left = 1, right = 1>>)
attn.problem @diff_not mask(#attn.diff<#attn.causal, #attn.not<#attn.band<left = 1, right = 1>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.causal, #attn.not<#attn.or<#attn.prefix<1>, #attn.chunk<2>>>>)
attn.problem @diff_or mask(#attn.diff<#attn.causal, #attn.or<#attn.prefix<1>, #attn.chunk<2>>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.band<left = 1, right = 1>, #attn.not<#attn.band<left = 1, right = 1>>>)
attn.problem @diff_itself mask(#attn.diff<#attn.band<left = 1, right = 1>, #attn.band<left = 1, right = 1>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.prefix<"a">, #attn.not<#attn.or<#attn.document, #attn.prefix<"p">>>>)
attn.problem @diff_arrays mask(#attn.diff<#attn.prefix<"a">, #attn.or<#attn.document, #attn.prefix<"p">>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// C2, its end: `and`, `not`, 29 times `or` and the leaf.
// CHECK: mask(#attn.and<#attn.full, #attn.not<#attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.causal>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>)
attn.problem @deep mask(#attn.diff<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.causal>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: exactly one mask.
// expected-error @below {{expected exactly one mask in `#attn.not`, got: 2}}
attn.problem @p mask(#attn.not<#attn.causal, #attn.full>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected exactly one mask in `#attn.not`, got: 0}}
attn.problem @p mask(#attn.not<>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: nested at most 32 deep.
// expected-error @below {{expected masks nested at most 32 deep, got: 33}}
attn.problem @p mask(#attn.not<#attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.causal>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2, as `and` of `not`.
// expected-error @below {{expected masks nested at most 32 deep, got: 33}}
attn.problem @p mask(#attn.diff<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.causal>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected masks nested at most 32 deep, got: 33}}
attn.problem @p mask(#attn.diff<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.or<#attn.full, #attn.causal>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: exactly two masks.
// expected-error @below {{expected exactly two masks in `#attn.diff`, got: 1}}
attn.problem @p mask(#attn.diff<#attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected exactly two masks in `#attn.diff`, got: 3}}
attn.problem @p mask(#attn.diff<#attn.causal, #attn.full, #attn.full>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// Something that is no mask.
// expected-error @below {{expected a mask such as #attn.causal, got: #attn.layout<bshd>}}
attn.problem @p mask(#attn.not<#attn.layout<bshd>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected a mask such as #attn.causal, got: #attn.layout<bshd>}}
attn.problem @p mask(#attn.diff<#attn.layout<bshd>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '<'}}
// expected-error @below {{expected exactly two masks in `#attn.diff`, got: 0}}
attn.problem @p mask(#attn.diff) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C3: of so many masks a kernel would take minutes to compile.
// expected-error @below {{expected at most 64 masks to make one of, got: 65; intervals of rows or columns say the same with arrays}}
attn.problem @wide mask(#attn.and<#attn.or<#attn.band<left = 0>, #attn.band<left = 1>, #attn.band<left = 2>, #attn.band<left = 3>, #attn.band<left = 4>, #attn.band<left = 5>, #attn.band<left = 6>, #attn.band<left = 7>, #attn.band<left = 8>, #attn.band<left = 9>, #attn.band<left = 10>, #attn.band<left = 11>, #attn.band<left = 12>, #attn.band<left = 13>, #attn.band<left = 14>, #attn.band<left = 15>, #attn.band<left = 16>, #attn.band<left = 17>, #attn.band<left = 18>, #attn.band<left = 19>, #attn.band<left = 20>, #attn.band<left = 21>, #attn.band<left = 22>, #attn.band<left = 23>, #attn.band<left = 24>, #attn.band<left = 25>, #attn.band<left = 26>, #attn.band<left = 27>, #attn.band<left = 28>, #attn.band<left = 29>, #attn.band<left = 30>, #attn.band<left = 31>, #attn.band<left = 32>, #attn.band<left = 33>, #attn.band<left = 34>, #attn.band<left = 35>, #attn.band<left = 36>, #attn.band<left = 37>, #attn.band<left = 38>, #attn.band<left = 39>, #attn.band<left = 40>, #attn.band<left = 41>, #attn.band<left = 42>, #attn.band<left = 43>, #attn.band<left = 44>, #attn.band<left = 45>, #attn.band<left = 46>, #attn.band<left = 47>, #attn.band<left = 48>, #attn.band<left = 49>, #attn.band<left = 50>, #attn.band<left = 51>, #attn.band<left = 52>, #attn.band<left = 53>, #attn.band<left = 54>, #attn.band<left = 55>, #attn.band<left = 56>, #attn.band<left = 57>, #attn.band<left = 58>, #attn.band<left = 59>, #attn.band<left = 60>, #attn.band<left = 61>, #attn.band<left = 62>, #attn.band<left = 63>>, #attn.causal>) layout(bshd) heads(4) dims(64) dtype(bf16)
