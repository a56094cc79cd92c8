// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans that are wrong for the sequences of a call.
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(plan.def(test-plan-tables))" -split-input-file -verify-diagnostics -o /dev/null

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// Keys of one rank are left out.
// expected-error @below {{expected rank 0 to attend to all keys that its queries see, got: never to position 2 of sequence 0}}
plan.def @p of(@problem) ranks(3) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %o = plan.attend %q, [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o1 = plan.attend %q, [%kv1] into(%o)
  plan.store %o1 : !plan.rows<partial>
}

// -----

// The same keys twice: both offsets lead to the same rank.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected rank 0 to attend to each key once, got: position 3 of sequence 0 twice}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t1 = plan.exchange %kv offset(1) : !plan.rows<kv>
  %t2 = plan.exchange %kv offset(-1) : !plan.rows<kv>
  %o = plan.attend %q, [%kv]
  %kv1 = plan.wait %t1 : !plan.arrival<kv>
  %kv2 = plan.wait %t2 : !plan.arrival<kv>
  %o1 = plan.attend %q, [%kv1, %kv2] into(%o)
  plan.store %o1 : !plan.rows<partial>
}

// -----

// Too few hops: rank 0's keys have to pass rank 1, which does not see them.
attn.problem @problem mask(#attn.band<left = 4, right = -4>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected rank 2 to attend to all keys that its queries see, got: never to position 0 of sequence 0}}
plan.def @p of(@problem) ranks(3) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t1 = plan.exchange %kv offset(1) rows onward hops(1) : !plan.rows<kv>
  %o = plan.attend %q, [%kv]
  %kv1 = plan.wait %t1 : !plan.arrival<kv>
  %t2 = plan.exchange %kv1 offset(1) rows onward hops(1) : !plan.rows<kv>
  %o1 = plan.attend %q, [%kv1] into(%o)
  %kv2 = plan.wait %t2 : !plan.arrival<kv>
  %o2 = plan.attend %q, [%kv2] into(%o1)
  plan.store %o2 : !plan.rows<partial>
}

// -----

// Gradients that do not come home. (A rank's own are there.)
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected gradients of rank 0's keys only, got: that of position 2 of sequence 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [4]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %dq, %own = plan.grads %q, [%kv] : !plan.rows<dkv>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %dq1, %others = plan.grads %q, [%kv1] into(%dq) : !plan.rows<dkv>
  %dkv = plan.sum like(%kv) [%own, %others]
  plan.store %dq1, %dkv : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

// Those of one rank come home twice, of the other never.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected gradients of rank 1's queries once, got: position 0 of a sequence twice on rank 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [4]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %dq, %own = plan.grads %q, [%kv] : !plan.rows<dkv>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %dq1, %others = plan.grads %q, [%kv1] into(%dq) : !plan.rows<dkv>
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
// expected-error @below {{expected the gradient of each key that a query sees to come home, got: that of position 0 of sequence 0 from rank 0 not on rank 0}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward attributes {test.sequences = {lengths = [4]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %dq, %own = plan.grads %q, [%kv] : !plan.rows<dkv>
  %away = plan.exchange %own offset(1) rows onward hops(1) unless(%t : !plan.arrival<kv>) : !plan.rows<dkv>
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %nothing = plan.wait %away : !plan.arrival<dkv>
  %dq1, %others = plan.grads %q, [%kv1] into(%dq) : !plan.rows<dkv>
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
  %o = plan.attend %q, [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected as many sequences of keys as of queries (1), got: 2}}
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6], keys = [3, 3]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend %q, [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected steps in the plan, got none (`plan-make-steps` writes some)}}
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [6]}} {}

// -----

// The work of sequences without keys is not asked for.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected as many sequences of keys as of queries (3), got: 1}}
plan.def @p of(@problem) ranks(2) sharding(#plan.documents) attributes {test.sequences = {lengths = [6, 5, 4], keys = [3]}} {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend %q, [%kv]
  plan.store %o : !plan.rows<partial>
}
