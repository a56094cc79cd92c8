// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each head of each query attends once to each key that it sees where pairs of neighbours exchange heads for rows.
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=gather head-group=2},test-plan-laws))" --mlir-disable-threading -o /dev/null | FileCheck %s
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=cast head-group=2},test-plan-laws))" --mlir-disable-threading -o /dev/null | FileCheck %s
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=ring head-group=2},test-plan-laws))" --mlir-disable-threading -o /dev/null | FileCheck %s
// CHECK-COUNT-12: 221 shapes
// CHECK-NOT: shapes
attn.problem @causal mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @causal0 of(@causal) ranks(4) sharding(#plan.contiguous) {}
plan.def @causal1 of(@causal) ranks(8) sharding(#plan.dual_chunk) backward {}
attn.problem @uneven mask(#attn.causal) layout(thd) heads(3, 1) dims(64) dtype(bf16)
plan.def @uneven0 of(@uneven) ranks(6) sharding(#plan.striped) backward {}
plan.def @uneven1 of(@uneven) ranks(4) sharding(#plan.documents) {}
attn.problem @one mask(#attn.full) layout(thd) heads(1) dims(64) dtype(bf16)
plan.def @one0 of(@one) ranks(4) sharding(#plan.dual_chunk) backward {}
attn.problem @both mask(#attn.band<left = 2, right = 1>) layout(thd) heads(4, 4) dims(64) dtype(bf16)
plan.def @both0 of(@both) ranks(4) sharding(#plan.contiguous) {}
plan.def @both1 of(@both) ranks(6) sharding(#plan.dual_chunk) backward {}
attn.problem @sinks mask(#attn.or<#attn.and<#attn.prefix<2>, #attn.causal>, #attn.band<left = 2, right = 0>>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @sinks0 of(@sinks) ranks(4) sharding(#plan.documents) backward {}
attn.problem @heads mask(#attn.heads<#attn.band<left = 0, right = 0>, #attn.causal>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @heads0 of(@heads) ranks(4) sharding(#plan.contiguous) backward {}
plan.def @padded of(@causal) ranks(4) sharding(#plan.dual_chunk<padded>) backward {}
attn.problem @apart mask(#attn.band<left = 2, right = 1, bottom_right>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @apart0 of(@apart) ranks(4) sharding(#plan.dual_chunk, #plan.striped) {}
plan.def @apart1 of(@apart) ranks(6) sharding(#plan.striped, #plan.documents) backward {}
