// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equality of masks whose bounds lie beyond the small shapes that are looked at first: what is
// said of a random expression and its canonical form, and of it and the one before.
//
// RUN: attn-opt %s --test-mask-laws="random=1500 size=2 seed=4" -o /dev/null | FileCheck %s
// CHECK: mask laws hold for 1511 masks
// CHECK-NEXT: {{[0-9][0-9][0-9]+}} pairs are equal, {{[0-9]+}} are not decided
attn.problem @m0 mask(#attn.full) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m1 mask(#attn.causal) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m2 mask(#attn.causal<bottom_right>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m3 mask(#attn.band<left = 9>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m4 mask(#attn.band<left = 12, right = -8, bottom_right>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m5 mask(#attn.band<right = 11>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m6 mask(#attn.prefix<10>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m7 mask(#attn.prefix<17>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m8 mask(#attn.global_rows<13>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m9 mask(#attn.chunk<4, bottom_right>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m10 mask(#attn.strided<stride = 2, offset = 1>) layout(bshd) heads(12) dims(64) dtype(bf16)
