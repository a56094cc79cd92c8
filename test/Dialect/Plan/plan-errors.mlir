// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected from 1 to 256 ranks, got: 0}}
plan.def @p of(@problem) ranks(0) sharding(#plan.contiguous) {}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected a `plan.store` of partial rows as the last step}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected a `plan.store` of dq and dkv rows as the last step}}
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %dq, %dkv = plan.grads [%q], [%kv]
  plan.store %dq : !plan.rows<dq>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  // expected-error @below {{expected rows of q or kv, got: dq}}
  %q = plan.local : !plan.rows<dq>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected an offset to another of 4 ranks, got: -4}}
  %t = plan.exchange %kv offset(-4) : !plan.rows<kv>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected groups whose size divides 4 ranks, got: within(3)}}
  %t = plan.exchange %kv offset(1) within(3) : !plan.rows<kv>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// What arrives and is never waited for.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected one `plan.wait` for what arrives, got: 0}}
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// What arrives and is never read.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  // expected-error @below {{expected a use of result 0, got: none}}
  %kv1 = plan.wait %t : !plan.arrival<kv>
  plan.store %o : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// A partial result that two steps go on from would count twice.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  // expected-error @below {{expected one use of result 0, of '!plan.rows<partial>', got: 2}}
  %o = plan.attend [%q], [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o1 = plan.attend [%q], [%kv1] into [%o]
  %o2 = plan.attend [%q], [%kv1] into [%o]
  plan.store %o2 : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// Rows cannot be read before they are there.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  // expected-error @below {{use of value '%t' expects different type than prior uses: '!plan.rows<kv>' vs '!plan.arrival<kv>'}}
  %o = plan.attend [%q], [%kv, %t]
  // expected-note @-3 {{prior use here}}
  plan.store %o : !plan.rows<partial>
}

// -----

// expected-error @below {{expected the name of an `attn.problem` of the module, got: @nope}}
plan.def @p of(@nope) ranks(2) sharding(#plan.contiguous) {}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  // expected-error @below {{expected steps of the `plan` dialect in a plan}}
  %kv = builtin.unrealized_conversion_cast to !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

// All gradients are needed.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %dq, %dkv = plan.grads [%q], [%kv]
  // expected-error @below {{expected rows of kv where some are sent, got: dkv}}
  %t = plan.exchange %dkv offset(1) rows needed : !plan.rows<dkv>
}

// -----

// Conditions are for gradients, which go along with keys.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  // expected-error @below {{expected rows of dkv where `if` or `unless` decides, got: q}}
  %t1 = plan.exchange %q offset(1) if(%t : !plan.arrival<kv>) : !plan.rows<q>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %dq, %dkv = plan.grads [%q], [%kv]
  // expected-error @below {{expected one `if` or `unless` of what arrives in a `plan.exchange`}}
  %t1 = plan.exchange %dkv offset(1) if(%t : !plan.arrival<kv>) unless(%t : !plan.arrival<kv>) : !plan.rows<dkv>
}

// -----

// A part of a part is not what its name says.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  // expected-error @below {{expected parts of the heads of a `plan.local` only}}
  %t = plan.exchange %q0 offset(1) within(2) heads : !plan.rows<q>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %q0 = plan.heads %q within(2) : !plan.rows<q>
  // expected-error @below {{expected parts of the heads of a `plan.local` only}}
  %q1 = plan.heads %q0 within(2) : !plan.rows<q>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected groups whose size divides 4 ranks, got: within(3)}}
  %q0 = plan.heads %q within(3) : !plan.rows<q>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected queries and keys, got: none}}
  "plan.attend"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!plan.rows<q>) -> !plan.rows<partial>
}

// -----

// One result before for two queries.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  // expected-error @below {{expected a result before for each of 2 queries, got: 1}}
  %o1:2 = plan.attend [%q, %q], [%kv] into [%o]
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %dq, %dkv = plan.grads [%q], [%kv]
  // expected-error @below {{expected a result before for each of 2 queries, got: 1}}
  %dq1:3 = plan.grads [%q, %q], [%kv] into [%dq]
}

// -----

// Keys have no results to join.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected rows of partial or dq, got: kv}}
  %o = plan.join_heads like(%q) [%kv, %kv] : !plan.rows<kv>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  // expected-error @below {{expected parts of '!plan.rows<partial>', got: '!plan.rows<q>'}}
  %o1 = "plan.join_heads"(%q, %o, %q) : (!plan.rows<q>, !plan.rows<partial>, !plan.rows<q>) -> !plan.rows<partial>
}

// -----

// Which rows are needed is not asked where heads are exchanged.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected all rows where `heads` are sent}}
  %t = plan.exchange %kv offset(1) within(2) heads rows needed : !plan.rows<kv>
}
