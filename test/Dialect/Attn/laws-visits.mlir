// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks over random expressions without remainders visit no empty tile, in either direction, unless they are
// unions of many zones.
//
// RUN: attn-opt %s --test-mask-laws="visits random=900" -o /dev/null | FileCheck %s
// RUN: attn-opt %s --test-mask-laws="random=400 size=2 seed=7" -o /dev/null | FileCheck %s --check-prefix=LAWS
// LAWS: mask laws hold for 418 masks
// CHECK: mask laws hold for 918 masks
// CHECK-NEXT: {{5[0-9][0-9]}} of them are unions of few zones
attn.problem @m0 mask(#attn.full) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m1 mask(#attn.causal) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m2 mask(#attn.causal<bottom_right>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m3 mask(#attn.band<left = 9>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m4 mask(#attn.band<left = 12, right = -8, bottom_right>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m4a mask(#attn.band<left = 3, right = 2>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m5 mask(#attn.band<right = 11>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m6 mask(#attn.prefix<10>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m7 mask(#attn.prefix<4>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m8 mask(#attn.global_rows<5>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m9 mask(#attn.chunk<7>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @m10 mask(#attn.chunk<9, bottom_right>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @lengths mask(#attn.prefix<"lengths">) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @counts mask(#attn.global_rows<"counts">) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @chunk_ahead mask(#attn.and<#attn.chunk<536870912, bottom_right>, #attn.band<right = -7>>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @chunk_behind mask(#attn.and<#attn.not<#attn.chunk<536870912, bottom_right>>, #attn.band<left = 1073741824, right = -7>>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @chunk_odd mask(#attn.diff<#attn.band<left = -1073741824>, #attn.chunk<536870911>>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @cross mask(#attn.and<#attn.band<left = 1073741824>, #attn.band<right = -1073741824, bottom_right>>) layout(bshd) heads(12) dims(64) dtype(bf16)
