// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=cast}))" | FileCheck %s --check-prefix=CAST
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=ring}))" | FileCheck %s --check-prefix=RING
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=ring}))" | attn-opt | FileCheck %s --check-prefix=RING
// RUN: not attn-opt %s --pass-pipeline="builtin.module(plan.def(plan-make-steps{strategy=star}))" 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: expected a strategy `gather`, `cast` or `ring`, got: star
attn.problem @problem mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16)

// Rounds are begun before the first step, which hides them.
// CAST: plan.def @forward of(@problem) ranks(3) sharding(#plan.dual_chunk) {
// CAST-NEXT: %[[Q:.*]] = plan.local : !plan.rows<q>
// CAST-NEXT: %[[KV:.*]] = plan.local : !plan.rows<kv>
// CAST-NEXT: %[[T1:.*]] = plan.exchange %[[KV]] offset(1) rows needed : !plan.rows<kv>
// CAST-NEXT: %[[T2:.*]] = plan.exchange %[[KV]] offset(2) rows needed : !plan.rows<kv>
// CAST-NEXT: %[[O:.*]] = plan.attend %[[Q]], [%[[KV]]]{{$}}
// CAST-NEXT: %[[KV1:.*]] = plan.wait %[[T1]] : !plan.arrival<kv>
// CAST-NEXT: %[[O1:.*]] = plan.attend %[[Q]], [%[[KV1]]] into(%[[O]])
// CAST-NEXT: %[[KV2:.*]] = plan.wait %[[T2]] : !plan.arrival<kv>
// CAST-NEXT: %[[O2:.*]] = plan.attend %[[Q]], [%[[KV2]]] into(%[[O1]])
// CAST-NEXT: plan.store %[[O2]] : !plan.rows<partial>
// CAST-NEXT: }
// RING: plan.def @forward
// RING: %[[T1:.*]] = plan.exchange %[[KV:.*]] offset(1) rows onward hops(2) : !plan.rows<kv>
// RING-NEXT: %[[O:.*]] = plan.attend %[[Q:.*]], [%[[KV]]]{{$}}
// RING-NEXT: %[[KV1:.*]] = plan.wait %[[T1]]
// RING-NEXT: %[[T2:.*]] = plan.exchange %[[KV1]] offset(1) rows onward hops(1) : !plan.rows<kv>
// RING-NEXT: %[[O1:.*]] = plan.attend %[[Q]], [%[[KV1]]] into(%[[O]])
// RING-NEXT: %[[KV2:.*]] = plan.wait %[[T2]]
// RING-NEXT: %[[O2:.*]] = plan.attend %[[Q]], [%[[KV2]]] into(%[[O1]])
// RING-NEXT: plan.store %[[O2]]
plan.def @forward of(@problem) ranks(3) sharding(#plan.dual_chunk) {}

// Gradients of keys go home from where their queries are.
// CAST: plan.def @backward of(@problem) ranks(2) sharding(#plan.contiguous, #plan.striped) backward {
// CAST: %[[DQ:.*]], %[[OWN:.*]] = plan.grads %[[Q:.*]], [%[[KV:.*]]] : !plan.rows<dkv>
// CAST: %[[DQ1:.*]], %[[D1:.*]] = plan.grads %[[Q]], [%[[KV1:.*]]] into(%[[DQ]]) : !plan.rows<dkv>
// CAST-NEXT: %[[HOME:.*]] = plan.exchange %[[D1]] offset(-1) : !plan.rows<dkv>
// CAST-NEXT: %[[CAME:.*]] = plan.wait %[[HOME]] : !plan.arrival<dkv>
// CAST-NEXT: %[[SUM:.*]] = plan.sum like(%[[KV]]) [%[[OWN]], %[[CAME]]]
// CAST-NEXT: plan.store %[[DQ1]], %[[SUM]] : !plan.rows<dq>, !plan.rows<dkv>
plan.def @backward of(@problem) ranks(2) sharding(#plan.contiguous, #plan.striped) backward {}

// In a ring they go along with the keys, and home from the last rank that had them.
// RING: plan.def @long
// RING: %[[ON1:.*]] = plan.exchange %{{.*}} offset(1) rows onward hops(2) : !plan.rows<kv>
// RING: %[[ON2:.*]] = plan.exchange %{{.*}} offset(1) rows onward hops(1) : !plan.rows<kv>
// RING: %{{.*}}, %[[D1:.*]] = plan.grads %{{.*}}, [%[[KV1:.*]]] into
// RING-NEXT: %[[PASSED:.*]] = plan.exchange %[[D1]] offset(1) rows onward hops(1) : !plan.rows<dkv>
// RING-NEXT: %[[HOME1:.*]] = plan.exchange %[[D1]] offset(-1) unless(%[[ON2]] : !plan.arrival<kv>) : !plan.rows<dkv>
// RING: %{{.*}}, %[[D2:.*]] = plan.grads %{{.*}}, [%[[KV2:.*]]] into
// RING-NEXT: %[[CAME:.*]] = plan.wait %[[PASSED]]
// RING-NEXT: %[[SUM2:.*]] = plan.sum like(%[[KV2]]) [%[[D2]], %[[CAME]]]
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
  %o = plan.attend %q, [%kv]
  plan.store %o : !plan.rows<partial>
}
