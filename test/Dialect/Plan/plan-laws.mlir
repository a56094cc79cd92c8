// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each visible pair is attended to once, under all shardings and strategies.
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=gather},test-plan-laws))" --mlir-disable-threading -o /dev/null | FileCheck %s
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=cast},test-plan-laws))" --mlir-disable-threading -o /dev/null | FileCheck %s
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=ring},test-plan-laws))" --mlir-disable-threading -o /dev/null | FileCheck %s
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{head-group=0},test-plan-laws))" --mlir-disable-threading -o /dev/null | FileCheck %s
// CHECK-COUNT-24: 221 shapes
// CHECK-NOT: shapes
attn.problem @causal mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @causal0 of(@causal) ranks(4) sharding(#plan.contiguous) {}
plan.def @causal1 of(@causal) ranks(3) sharding(#plan.dual_chunk) backward {}
attn.problem @full mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @full0 of(@full) ranks(3) sharding(#plan.striped) backward {}
plan.def @full1 of(@full) ranks(2) sharding(#plan.documents) {}
attn.problem @window mask(#attn.band<left = 3, right = 0>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @window0 of(@window) ranks(2) sharding(#plan.contiguous) {}
plan.def @window1 of(@window) ranks(5) sharding(#plan.dual_chunk) backward {}
attn.problem @ahead mask(#attn.band<left = 0, right = 2>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @ahead0 of(@ahead) ranks(5) sharding(#plan.striped) backward {}
plan.def @ahead1 of(@ahead) ranks(4) sharding(#plan.documents) {}
attn.problem @both mask(#attn.band<left = 2, right = 1>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @both0 of(@both) ranks(4) sharding(#plan.contiguous) {}
plan.def @both1 of(@both) ranks(3) sharding(#plan.dual_chunk) backward {}
attn.problem @chunk mask(#attn.and<#attn.chunk<4>, #attn.causal>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @chunk0 of(@chunk) ranks(3) sharding(#plan.striped) backward {}
plan.def @chunk1 of(@chunk) ranks(2) sharding(#plan.documents) {}
attn.problem @sinks mask(#attn.or<#attn.and<#attn.prefix<2>, #attn.causal>, #attn.band<left = 2, right = 0>>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @sinks0 of(@sinks) ranks(2) sharding(#plan.contiguous) {}
plan.def @sinks1 of(@sinks) ranks(5) sharding(#plan.dual_chunk) backward {}
attn.problem @strided mask(#attn.and<#attn.strided<stride = 3>, #attn.causal>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @strided0 of(@strided) ranks(5) sharding(#plan.striped) backward {}
plan.def @strided1 of(@strided) ranks(4) sharding(#plan.documents) {}
attn.problem @rows mask(#attn.or<#attn.global_rows<2>, #attn.band<left = 1, right = 1>>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @rows0 of(@rows) ranks(4) sharding(#plan.contiguous) {}
plan.def @rows1 of(@rows) ranks(3) sharding(#plan.dual_chunk) backward {}
plan.def @padded of(@causal) ranks(2) sharding(#plan.dual_chunk<padded>) backward {}
attn.problem @right mask(#attn.causal<bottom_right>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @right0 of(@right) ranks(3) sharding(#plan.contiguous, #plan.dual_chunk) {}
plan.def @right1 of(@right) ranks(4) sharding(#plan.dual_chunk, #plan.striped) backward {}
attn.problem @apart mask(#attn.band<left = 2, right = 1, bottom_right>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @apart0 of(@apart) ranks(3) sharding(#plan.dual_chunk, #plan.striped) {}
plan.def @apart1 of(@apart) ranks(4) sharding(#plan.striped, #plan.documents) backward {}
attn.problem @heads mask(#attn.heads<#attn.band<left = 0, right = 0>, #attn.causal>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @heads0 of(@heads) ranks(2) sharding(#plan.documents) {}
