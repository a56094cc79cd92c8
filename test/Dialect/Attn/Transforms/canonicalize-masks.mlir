// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal masks get one form. That the form is the same set is a law (`--test-mask-laws`).
//
// RUN: attn-opt %s -attn-canonicalize-masks | FileCheck %s

// A window, causal: one band, whatever else is said that follows from it.
// CHECK-LABEL: @window
// CHECK-SAME: mask(#attn.band<left = 127, right = 0>)
attn.problem @window mask(#attn.and<#attn.band<left = 127>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK-LABEL: @window_said_long
// CHECK-SAME: mask(#attn.band<left = 127, right = 0>)
attn.problem @window_said_long mask(#attn.and<#attn.not<#attn.band<left = -1>>, #attn.full, #attn.or<#attn.causal, #attn.prefix<0>>,
  #attn.band<left = 127, right = 4>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// Two windows that touch are one, others are not.
// CHECK-LABEL: @touch
// CHECK-SAME: mask(#attn.band<left = 9, right = 5>)
attn.problem @touch mask(#attn.or<#attn.band<left = 9, right = -3>, #attn.band<left = 2, right = 5>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK-LABEL: @apart
// CHECK-SAME: mask(#attn.or<#attn.band<left = 1, right = 5>, #attn.band<left = 9, right = -3>>)
attn.problem @apart mask(#attn.or<#attn.band<left = 9, right = -3>, #attn.band<left = 1, right = 5>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// Sinks lie before the diagonal where the window ends, but not always: causal stays with them.
// CHECK-LABEL: @sinks
// CHECK-SAME: mask(#attn.and<#attn.causal, #attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>>)
attn.problem @sinks mask(#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>, #attn.causal>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// `not` goes down to leaves.
// CHECK-LABEL: @down
// CHECK-SAME: mask(#attn.and<#attn.not<#attn.document>, #attn.band<left = -1>, #attn.not<#attn.prefix<4>>>)
attn.problem @down mask(#attn.not<#attn.or<#attn.prefix<4>, #attn.causal, #attn.document>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// What cannot be seen, and what always is.
// CHECK-LABEL: @nothing
// CHECK-SAME: mask(#attn.not<#attn.full>)
attn.problem @nothing mask(#attn.and<#attn.document, #attn.causal, #attn.not<#attn.document>>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK-LABEL: @everything
// CHECK-SAME: mask(#attn.full)
attn.problem @everything mask(#attn.or<#attn.strided<stride = 3, offset = 1>, #attn.not<#attn.strided<stride = 3, offset = 1>>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// No two of these exclude each other, all of them do: keys from 6 on, of rows up to 3, at the diagonal.
// CHECK-LABEL: @together_nothing
// CHECK-SAME: mask(#attn.not<#attn.full>)
attn.problem @together_nothing mask(#attn.and<#attn.not<#attn.prefix<6>>, #attn.global_rows<4>, #attn.band<left = 1, right = 1>>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// Parts that a part implies: with arrays, only where it stands there literally.
// CHECK-LABEL: @absorbed
// CHECK-SAME: mask(#attn.and<#attn.causal, #attn.document>)
attn.problem @absorbed mask(#attn.and<#attn.or<#attn.document, #attn.prefix<"lengths">>, #attn.document, #attn.causal>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// Every second key is every fourth one, or every fourth one from the third on.
// CHECK-LABEL: @strides
// CHECK-SAME: mask(#attn.strided<stride = 2>)
attn.problem @strides mask(#attn.or<#attn.strided<stride = 4>, #attn.strided<stride = 2>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// Groups of heads that have one mask.
// CHECK-LABEL: @heads
// CHECK-SAME: mask(#attn.heads<#attn.causal, #attn.full>)
attn.problem @heads mask(#attn.heads<#attn.causal, #attn.band<right = 0>, #attn.full, #attn.not<#attn.not<#attn.full>>>)
  layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK-LABEL: @alike
// CHECK-SAME: mask(#attn.causal)
attn.problem @alike mask(#attn.heads<#attn.causal, #attn.band<right = 0>>) layout(bshd) heads(8) dims(64) dtype(bf16)
