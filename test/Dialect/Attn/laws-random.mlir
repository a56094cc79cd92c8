// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random `and`/`or` expressions over every leaf, each analysis of each against
// `keeps` on all small shapes. The 11 leaves themselves are checked first.
//
// RUN: attn-opt %s --test-mask-laws="random=400 size=5" -o /dev/null | FileCheck %s
// RUN: attn-opt %s --test-mask-laws="random=100 size=6 seed=2" -o /dev/null | FileCheck %s --check-prefix=SEED2
// CHECK: mask laws hold for 411 masks
// SEED2: mask laws hold for 111 masks
attn.problem @full mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @causal mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @causal_br mask(#attn.causal<bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @band mask(#attn.band<left = 1, right = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @left mask(#attn.band<left = 2, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @right mask(#attn.band<right = -1>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @above mask(#attn.band<left = -2, right = 3>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @prefix mask(#attn.prefix<2>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @nothing mask(#attn.prefix<0>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @array mask(#attn.prefix<"lengths">) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @document mask(#attn.document) layout(bshd) heads(8) dims(64) dtype(bf16)
