// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=cast}))" | FileCheck %s --check-prefix=CAST
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=ring}))" | FileCheck %s --check-prefix=RING
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=ring}))" | attn-opt | FileCheck %s --check-prefix=RING
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{head-group=0}))" | attn-opt | FileCheck %s --check-prefix=HEADS
// RUN: not attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=star}))" 2>&1 | FileCheck %s --check-prefix=STAR
// STAR: expected a strategy `gather`, `cast` or `ring`, got: star
// RUN: not attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{head-group=2}))" 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: expected a head-group that divides 3 ranks, got: 2
attn.problem @problem mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16)

// Rounds are begun before the first step, which hides them.
// CAST: plan.def @forward of(@problem) ranks(3) sharding(#plan.dual_chunk) {
// CAST-NEXT: %[[Q:.*]] = plan.local : !plan.rows<q>
// CAST-NEXT: %[[KV:.*]] = plan.local : !plan.rows<kv>
// CAST-NEXT: %[[T1:.*]] = plan.exchange %[[KV]] offset(1) rows needed : !plan.rows<kv>
// CAST-NEXT: %[[T2:.*]] = plan.exchange %[[KV]] offset(2) rows needed : !plan.rows<kv>
// CAST-NEXT: %[[O:.*]] = plan.attend [%[[Q]]], [%[[KV]]]{{$}}
// CAST-NEXT: %[[KV1:.*]] = plan.wait %[[T1]] : !plan.arrival<kv>
// CAST-NEXT: %[[O1:.*]] = plan.attend [%[[Q]]], [%[[KV1]]] into [%[[O]]]
// CAST-NEXT: %[[KV2:.*]] = plan.wait %[[T2]] : !plan.arrival<kv>
// CAST-NEXT: %[[O2:.*]] = plan.attend [%[[Q]]], [%[[KV2]]] into [%[[O1]]]
// CAST-NEXT: plan.store %[[O2]] : !plan.rows<partial>
// CAST-NEXT: }
// RING: plan.def @forward
// RING: %[[T1:.*]] = plan.exchange %[[KV:.*]] offset(1) rows all_if_needed : !plan.rows<kv>
// RING-NEXT: %[[O:.*]] = plan.attend [%[[Q:.*]]], [%[[KV]]]{{$}}
// RING-NEXT: %[[KV1:.*]] = plan.wait %[[T1]]
// RING-NEXT: %[[T2:.*]] = plan.exchange %[[KV1]] offset(1) rows all_if_needed : !plan.rows<kv>
// RING-NEXT: %[[O1:.*]] = plan.attend [%[[Q]]], [%[[KV1]]] into [%[[O]]]
// RING-NEXT: %[[KV2:.*]] = plan.wait %[[T2]]
// RING-NEXT: %[[O2:.*]] = plan.attend [%[[Q]]], [%[[KV2]]] into [%[[O1]]]
// RING-NEXT: plan.store %[[O2]]
plan.def @forward of(@problem) ranks(3) sharding(#plan.dual_chunk) {}

// Gradients of keys go home from where their queries are.
// CAST: plan.def @backward of(@problem) ranks(2) sharding(#plan.contiguous, #plan.striped) backward {
// CAST: %[[D:.*]]:2 = plan.grads [%[[Q:.*]]], [%[[KV:.*]]]
// CAST: %[[D1:.*]]:2 = plan.grads [%[[Q]]], [%[[KV1:.*]]] into [%[[D]]#0]
// CAST-NEXT: %[[HOME:.*]] = plan.exchange %[[D1]]#1 offset(-1) : !plan.rows<dkv>
// CAST-NEXT: %[[CAME:.*]] = plan.wait %[[HOME]] : !plan.arrival<dkv>
// CAST-NEXT: %[[SUM:.*]] = plan.sum like(%[[KV]]) [%[[D]]#1, %[[CAME]]]
// CAST-NEXT: plan.store %[[D1]]#0, %[[SUM]] : !plan.rows<dq>, !plan.rows<dkv>
plan.def @backward of(@problem) ranks(2) sharding(#plan.contiguous, #plan.striped) backward {}

// In a ring they go along with the keys, and home from the last rank that had them.
// RING: plan.def @long
// RING: %[[ON1:.*]] = plan.exchange %{{.*}} offset(1) rows all_if_needed : !plan.rows<kv>
// RING: %[[ON2:.*]] = plan.exchange %{{.*}} offset(1) rows all_if_needed : !plan.rows<kv>
// RING: %[[D1:.*]]:2 = plan.grads [%{{.*}}], [%[[KV1:.*]]] into
// RING-NEXT: %[[PASSED:.*]] = plan.exchange %[[D1]]#1 offset(1) if(%[[ON2]] : !plan.arrival<kv>) : !plan.rows<dkv>
// RING-NEXT: %[[HOME1:.*]] = plan.exchange %[[D1]]#1 offset(-1) unless(%[[ON2]] : !plan.arrival<kv>) : !plan.rows<dkv>
// RING: %[[D2:.*]]:2 = plan.grads [%{{.*}}], [%[[KV2:.*]]] into
// RING-NEXT: %[[CAME:.*]] = plan.wait %[[PASSED]]
// RING-NEXT: %[[SUM2:.*]] = plan.sum like(%[[KV2]]) [%[[D2]]#1, %[[CAME]]]
// RING-NEXT: %[[HOME2:.*]] = plan.exchange %[[SUM2]] offset(-2) : !plan.rows<dkv>
plan.def @long of(@problem) ranks(3) sharding(#plan.dual_chunk) backward {}

// Steps that are there stay as they are.
// CAST: plan.def @given
// CAST-NOT: plan.exchange
// RING: plan.def @given
// RING-NOT: plan.exchange
plan.def @given of(@problem) ranks(1) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}

// Neighbours exchange heads for rows, and results back. A KV head may be on several ranks.
// HEADS: plan.def @backward of(@problem) ranks(2)
// HEADS-NEXT: %[[Q:.*]] = plan.local : !plan.rows<q>
// HEADS-NEXT: %[[KV:.*]] = plan.local : !plan.rows<kv>
// HEADS-NEXT: %[[TQ:.*]] = plan.exchange %[[Q]] offset(1) within(2) heads : !plan.rows<q>
// HEADS-NEXT: %[[TKV:.*]] = plan.exchange %[[KV]] offset(1) within(2) heads : !plan.rows<kv>
// HEADS-NEXT: %[[Q0:.*]] = plan.heads %[[Q]] within(2) : !plan.rows<q>
// HEADS-NEXT: %[[KV0:.*]] = plan.heads %[[KV]] within(2) : !plan.rows<kv>
// HEADS-NEXT: %[[Q1:.*]] = plan.wait %[[TQ]] : !plan.arrival<q>
// HEADS-NEXT: %[[KV1:.*]] = plan.wait %[[TKV]] : !plan.arrival<kv>
// HEADS-NEXT: %[[D:.*]]:4 = plan.grads [%[[Q0]], %[[Q1]]], [%[[KV0]], %[[KV1]]]
// HEADS-NEXT: %[[HOMEQ:.*]] = plan.exchange %[[D]]#1 offset(-1) within(2) : !plan.rows<dq>
// HEADS-NEXT: %[[HOMEKV:.*]] = plan.exchange %[[D]]#3 offset(-1) within(2) : !plan.rows<dkv>
// HEADS-NEXT: %[[CAMEQ:.*]] = plan.wait %[[HOMEQ]] : !plan.arrival<dq>
// HEADS-NEXT: %[[DQ:.*]] = plan.join_heads like(%[[Q]]) [%[[D]]#0, %[[CAMEQ]]] : !plan.rows<dq>
// HEADS-NEXT: %[[CAMEKV:.*]] = plan.wait %[[HOMEKV]] : !plan.arrival<dkv>
// HEADS-NEXT: %[[DKV:.*]] = plan.sum like(%[[KV]]) [%[[D]]#2, %[[CAMEKV]]]
// HEADS-NEXT: plan.store %[[DQ]], %[[DKV]] : !plan.rows<dq>, !plan.rows<dkv>
