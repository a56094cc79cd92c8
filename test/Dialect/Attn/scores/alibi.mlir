// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.alibi`: scores fall with the distance from the diagonal. And what holds for
// all lists of score modifiers.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: dtype(bf16) score([#attn.alibi]){{ *$}}
// GENERIC: score = [#attn.alibi],
attn.problem @top_left mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi<top_left>])
// CHECK: scale(5.000000e-01) score([#attn.alibi<bottom_right>]) outputs(o)
attn.problem @bottom_right mask(#attn.causal) layout(thd) heads(12, 4) dims(64) dtype(f16) scale(0.5)
  score([#attn.alibi<bottom_right>]) outputs(o)
// Slopes from an array.
// CHECK: score([#attn.alibi<"slopes">])
// GENERIC: score = [#attn.alibi<"slopes">],
attn.problem @given mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi<"slopes">])
// CHECK: score([#attn.alibi<"_s9", bottom_right>])
attn.problem @given_too mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi<"_s9", bottom_right>])
// The order is that of the text.
// CHECK: score([#attn.alibi, #attn.softcap<5.000000e+01>])
attn.problem @ordered mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.alibi, #attn.softcap<50.0>])
// CHECK: score([])
attn.problem @none mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([])

// -----

// expected-error @below {{expected `top_left` or `bottom_right`, got: left}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi<left>])

// -----

// C1: the name is an identifier.
// expected-error @below {{expected an identifier as the name of an array of slopes, got: "my slopes"}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi<"my slopes">])

// -----

// C1
// expected-error @below {{expected an identifier as the name of an array of slopes, got: ""}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi<"">])

// -----

// C8 of problems: not called like another tensor of the problem.
// expected-error @below {{expected a name for the modifier's array that nothing else of the problem has, got: "k"}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi<"k">])

// -----

// C8, nor like an array of the mask.
// expected-error @below {{expected a name for the modifier's array that nothing else of the problem has, got: "lengths"}}
attn.problem @p mask(#attn.prefix<"lengths">) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.alibi<"lengths">])

// -----

// C9 of problems: `score` lists score modifiers,
// expected-error @below {{'attn.problem' op expected score modifiers such as #attn.softcap<30.0> or #attn.alibi, got: #attn.causal}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<30.0>, #attn.causal])

// -----

// and none twice that may not repeat,
// expected-error @below {{'attn.problem' op expected at most one score modifier of this kind, got: #attn.alibi<bottom_right> once more}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.alibi, #attn.softcap<50.0>, #attn.alibi<bottom_right>])

// -----

// expected-error @below {{got: #attn.softcap<2.000000e+01> once more}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.softcap<30.0>, #attn.softcap<20.0>])

// -----

// at most 8.
// expected-error @below {{'attn.problem' op expected at most 8 score modifiers, got: 9}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.alibi, #attn.alibi, #attn.alibi, #attn.alibi, #attn.alibi, #attn.alibi, #attn.alibi, #attn.alibi, #attn.alibi])

// -----

// A score modifier is no mask.
// expected-error @below {{expected a mask such as #attn.causal, got: #attn.alibi}}
attn.problem @p mask(#attn.alibi) layout(bshd) heads(8) dims(64) dtype(bf16)
