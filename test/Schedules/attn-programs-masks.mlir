// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls give the arrays of the mask that was given, even if its canonical form reads fewer. Sizes keep the names that
// they have with all arrays.
//
// RUN: attn-opt %s -attn-canonicalize-masks -attn-choose-schedule=target=cpu -convert-attn-to-tile | FileCheck %s

attn.problem @all mask(#attn.or<#attn.block_list<"lists", rows = 8, keys = 8>, #attn.full>) layout(bshd) heads(2) dims(64) dtype(bf16)
attn.problem @listed mask(#attn.block_list<"lists", rows = 8, keys = 8>) layout(bshd) heads(2) dims(64) dtype(bf16)
attn.backward @all_grads of(@all)
// CHECK-LABEL: program.def @all_program {
// CHECK-NOT: "lists"
// CHECK-LABEL: program.def @listed_program {
// CHECK: program.tensor "lists"
// CHECK-LABEL: program.def @all_grads_program {
// CHECK-NOT: "lists"
// CHECK-LABEL: program.def @p_program {
// CHECK: program.tensor "unread" array : i32 [batch, 2, ceil_div(seqlen_q, 8), lists_entries]{{$}}
// CHECK: program.tensor "lists" array : i32 [batch, 2, ceil_div(seqlen_q, 8), lists_entries_of_lists]{{$}}
// CHECK: program.launch @all grid
// CHECK-NOT: size lists_entries,
// CHECK: program.launch @listed_offsets grid{{.*}}size lists_entries_of_lists,
// CHECK: program.launch @all_grads grid
// CHECK-NOT: %unread
attn.program @p {
  %q = attn.operand "q"
  %k = attn.operand "k"
  %v = attn.operand "v"
  %unread = attn.operand "unread"
  %lists = attn.operand "lists"
  %do = attn.operand "do"
  %o, %lse = attn.call @all(q = %q, k = %k, v = %v, lists = %unread) -> (o, lse)
  %o2 = attn.call @listed(q = %q, k = %k, v = %v, lists = %lists) -> (o)
  %dq = attn.call @all_grads(q = %q, k = %k, v = %v, o = %o, lse = %lse, do = %do, lists = %unread) -> (dq)
  attn.result "o" = %o2
  attn.result "dq" = %dq
}
