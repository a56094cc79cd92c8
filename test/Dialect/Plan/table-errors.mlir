// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans that are wrong for the sequences of a call.
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(test-plan-tables))" -split-input-file -verify-diagnostics -o /dev/null

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// Keys of one rank are left out.
// expected-error @below {{expected queries of rank 0 to attend to all keys that they see, got: head 0 never to position 2 of sequence 0}}
plan.def @p of(@problem) ranks(3) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o1 = plan.attend [%q], [%kv1] into [%o]
  plan.store %o1 : !plan.rows<partial>
}

// -----

// The same keys twice: both offsets lead to the same rank.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected queries of rank 0 to attend to each key once, got: head 0 to position 3 of sequence 0 twice}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t1 = plan.exchange %kv offset(1) : !plan.rows<kv>
  %t2 = plan.exchange %kv offset(-1) : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  %kv1 = plan.wait %t1 : !plan.arrival<kv>
  %kv2 = plan.wait %t2 : !plan.arrival<kv>
  %o1 = plan.attend [%q], [%kv1, %kv2] into [%o]
  plan.store %o1 : !plan.rows<partial>
}

// -----

// Gradients that do not come home. (A rank's own are there.)
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected gradients of rank 0's keys only, got: that of position 2 of sequence 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [4]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %dq, %own = plan.grads [%q], [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %dq1, %others = plan.grads [%q], [%kv1] into [%dq]
  %dkv = plan.sum like(%kv) [%own, %others]
  plan.store %dq1, %dkv : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

// Those of one rank come home twice, of the other never.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected gradients of rank 1's queries once, got: of head 0 and position 0 of sequence 0 twice on rank 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [4]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %dq, %own = plan.grads [%q], [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %dq1, %others = plan.grads [%q], [%kv1] into [%dq]
  %home = plan.exchange %others offset(-1) : !plan.rows<dkv>
  %again = plan.exchange %others offset(1) : !plan.rows<dkv>
  %a = plan.wait %home : !plan.arrival<dkv>
  %b = plan.wait %again : !plan.arrival<dkv>
  %dkv = plan.sum like(%kv) [%own, %a, %b]
  plan.store %dq1, %dkv : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

// A rank's own gradients are missing.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected the gradient of each key that a query sees to come home, got: that of position 0 of sequence 0 from head 0 of rank 0 not on rank 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [4]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %dq, %own = plan.grads [%q], [%kv]
  %away = plan.exchange %own offset(1) unless(%t : !plan.arrival<kv>) : !plan.rows<dkv>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %nothing = plan.wait %away : !plan.arrival<dkv>
  %dq1, %others = plan.grads [%q], [%kv1] into [%dq]
  %home = plan.exchange %others offset(-1) : !plan.rows<dkv>
  %a = plan.wait %home : !plan.arrival<dkv>
  %dkv = plan.sum like(%kv) [%a, %nothing]
  plan.store %dq1, %dkv : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

// Shardings that do not take these sequences.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected slots of a multiple of 4 rows}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous, #plan.dual_chunk<padded>) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected as many sequences of keys as of queries (1), got: 2}}
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6], keys = [3, 3]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected steps in the plan, got: none (`plan-make-steps` writes some)}}
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {}

// -----

// The work of sequences without keys is not asked for.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected as many sequences of keys as of queries (3), got: 1}}
plan.def @p of(@problem) ranks(2) sharding(#plan.documents) attributes {test.sequences = {lengths = [6, 5, 4], keys = [3]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

// One head twice: a rank's own result stands in for its neighbour's.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected results of rank 0's queries, got: of others}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %tq = plan.exchange %q offset(1) within(2) heads : !plan.rows<q>
  %tkv = plan.exchange %kv offset(1) within(2) heads : !plan.rows<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
  %q1 = plan.wait %tq : !plan.arrival<q>
  %kv1 = plan.wait %tkv : !plan.arrival<kv>
  %o0, %o1 = plan.attend [%q0, %q1], [%kv0, %kv1]
  %o = plan.join_heads like(%q) [%o0, %o1] : !plan.rows<partial>
  plan.store %o : !plan.rows<partial>
}

// -----

// Results of some heads only.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected each head once on rank 0, got: head 2 never}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o0 = plan.attend [%q0], [%kv, %kv1]
  %o = plan.join_heads like(%q) [%o0] : !plan.rows<partial>
  plan.store %o : !plan.rows<partial>
}

// -----

// One head twice.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected each head once on rank 0, got: head 0 twice}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  %o0, %o1 = plan.attend [%q, %q0], [%kv, %kv1]
  %o = plan.join_heads like(%q) [%o0, %o1] : !plan.rows<partial>
  plan.store %o : !plan.rows<partial>
}

// -----

// Keys without the heads that the queries use.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected the heads of keys that query heads 0 to 3 use on rank 0, got others}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o = plan.attend [%q], [%kv0, %kv1]
  plan.store %o : !plan.rows<partial>
}

// -----

// The results of both queries change places.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected `into` results of the queries that attend on rank 0, got: of others}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %tq = plan.exchange %q offset(1) within(2) heads : !plan.rows<q>
  %tkv = plan.exchange %kv offset(1) within(2) heads : !plan.rows<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
  %q1 = plan.wait %tq : !plan.arrival<q>
  %kv1 = plan.wait %tkv : !plan.arrival<kv>
  %o0, %o1 = plan.attend [%q0, %q1], [%kv0]
  %o2, %o3 = plan.attend [%q0, %q1], [%kv1] into [%o1, %o0]
  %home = plan.exchange %o3 offset(-1) : !plan.rows<partial>
  %came = plan.wait %home : !plan.arrival<partial>
  %o = plan.join_heads like(%q) [%o2, %came] : !plan.rows<partial>
  plan.store %o : !plan.rows<partial>
}

// -----

// A rank computes its own rows only; the other rank's attend to half of the keys.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected queries of rank 0 to attend to all keys that they see, got: head 2 never to position 0 of sequence 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %tq = plan.exchange %q offset(1) within(2) heads : !plan.rows<q>
  %tkv = plan.exchange %kv offset(1) within(2) heads : !plan.rows<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
  %q1 = plan.wait %tq : !plan.arrival<q>
  %kv1 = plan.wait %tkv : !plan.arrival<kv>
  %o0 = plan.attend [%q0], [%kv0, %kv1]
  %o1 = plan.attend [%q1], [%kv0]
  %home = plan.exchange %o1 offset(-1) : !plan.rows<partial>
  %came = plan.wait %home : !plan.arrival<partial>
  %o = plan.join_heads like(%q) [%o0, %came] : !plan.rows<partial>
  plan.store %o : !plan.rows<partial>
}

// -----

// Gradients of other heads' keys.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected gradients of heads 0 to 0 of keys on rank 0, got: 0 to 1}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
  %dq, %own = plan.grads [%q], [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %dq1, %others = plan.grads [%q], [%kv1] into [%dq]
  %home = plan.exchange %others offset(-1) : !plan.rows<dkv>
  %came = plan.wait %home : !plan.arrival<dkv>
  %dkv = plan.sum like(%kv0) [%own, %came]
  plan.store %dq1, %dkv : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

// Gradients of one of two heads that share keys do not come home.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 1) dims(64) dtype(bf16)
// expected-error @below {{expected the gradient of each key that a query sees to come home, got: that of position 0 of sequence 0 from head 2 of rank 0 not on rank 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %tq = plan.exchange %q offset(1) within(2) heads : !plan.rows<q>
  %tkv = plan.exchange %kv offset(1) within(2) heads : !plan.rows<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
  %q1 = plan.wait %tq : !plan.arrival<q>
  %kv1 = plan.wait %tkv : !plan.arrival<kv>
  %d:4 = plan.grads [%q0, %q1], [%kv0, %kv1]
  %homeq = plan.exchange %d#1 offset(-1) : !plan.rows<dq>
  %cameq = plan.wait %homeq : !plan.arrival<dq>
  %dq = plan.join_heads like(%q) [%d#0, %cameq] : !plan.rows<dq>
  %home = plan.exchange %d#3 offset(-1) unless(%tkv : !plan.arrival<kv>) : !plan.rows<dkv>
  %came = plan.wait %home : !plan.arrival<dkv>
  %dkv = plan.sum like(%kv) [%d#2, %came]
  plan.store %dq, %dkv : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

// Rank 0 computes no head, so it has none of the keys; its queries are there all the same.
attn.problem @problem mask(#attn.full) layout(thd) heads(1) dims(64) dtype(bf16)
// expected-error @below {{expected the heads of keys that query heads 0 to 0 use on rank 0, got others}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o = plan.attend [%q], [%kv0, %kv1]
  plan.store %o : !plan.rows<partial>
}

// -----

// Half of a result would be lost: it has heads that the queries do not have.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected results of heads 0 to 1 on rank 0, got: 0 to 3}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %ta = plan.exchange %q offset(1) within(2) heads : !plan.rows<q>
  %away = plan.wait %ta : !plan.arrival<q>
  %tb = plan.exchange %away offset(-1) : !plan.rows<q>
  %qx = plan.wait %tb : !plan.arrival<q>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o = plan.attend [%q], [%kv]
  %oa = plan.join_heads like(%q0) [%o] : !plan.rows<partial>
  %ob = plan.attend [%q0], [%kv1] into [%oa]
  %oc = plan.attend [%qx], [%kv1]
  %r = plan.join_heads like(%q) [%ob, %oc] : !plan.rows<partial>
  plan.store %r : !plan.rows<partial>
}

// -----

// No query, no gradient, and nothing wrong.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [0]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %dq, %dkv = plan.grads [%q], [%kv]
  plan.store %dq, %dkv : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd padded) heads(4, 2) dims(64) dtype(bf16) segments(4)
// expected-error @below {{expected a problem whose sequences are given, got: one with segments}}
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}
