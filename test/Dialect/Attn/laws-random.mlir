// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random expressions over every leaf, each analysis of each against `keeps` on
// all small shapes; so are canonical forms, and what is said of two masks' equality. The 31 masks
// themselves are checked first.
//
// RUN: attn-opt %s --test-mask-laws="random=%if long %{400%} %else %{100%} size=5" -o /dev/null | FileCheck %s -D#RANDOM=%if long %{400%} %else %{100%}
// RUN: attn-opt %s --test-mask-laws="random=%if long %{100%} %else %{15%} size=6 seed=2" -o /dev/null | FileCheck %s -D#RANDOM=%if long %{100%} %else %{15%}
// RUN: attn-opt %s --test-mask-laws="random=%if long %{10000%} %else %{1200%} size=3 seed=3" -o /dev/null | FileCheck %s -D#RANDOM=%if long %{10000%} %else %{1200%} --check-prefixes=CHECK,MANY
// CHECK: mask laws hold for [[#RANDOM + 31]] masks
// MANY-NEXT: {{[0-9]+}} pairs are equal, 0 are not decided
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
attn.problem @chunk mask(#attn.chunk<2>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @chunk_br mask(#attn.chunk<3, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @pooled mask(#attn.pooled<length = 3, stride = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @pooled_last mask(#attn.pooled<length = 2, stride = 3, keys = "positions">) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @strided mask(#attn.strided<stride = 2, offset = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @strided_br mask(#attn.strided<stride = 3, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @every mask(#attn.strided<stride = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @not mask(#attn.not<#attn.full>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @not_band mask(#attn.not<#attn.band<left = 0, right = 1>>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @rows mask(#attn.global_rows<2>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @rows_array mask(#attn.global_rows<"row_counts">) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @row_interval mask(#attn.row_interval<begin = "a", end = "b">) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @column_interval mask(#attn.column_interval<end = "c", per_head>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @tree mask(#attn.tree<"node", "first", "behind">) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @ancestors mask(#attn.ancestors<"parent">) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @every_third mask(#attn.predicate<"(q - k) % 3 != 1 && k <= q + 1">) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @kinds mask(#attn.predicate<"kind[q] == 1 || kind_kv[k] == kind[q] && abs(q - k) < 2">) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @choice mask(#attn.predicate<"h < 4 ? (k - q) / 2 < some[b] : q / 2 == k / 2">) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @map mask(#attn.block_map<"offsets", "columns", q = 2, kv = 3, per_head>) layout(bshd) heads(12) dims(64) dtype(bf16)
attn.problem @lists mask(#attn.block_list<"lists", rows = 3, keys = 2>) layout(bshd) heads(12) dims(64) dtype(bf16)
