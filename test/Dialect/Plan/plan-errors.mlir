// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected from 1 to 65536 ranks, got: 0}}
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
  %dq, %dkv = plan.grads %q, [%kv] : !plan.rows<dkv>
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
plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected `hops` from 1 to 3 with rows onward, and no others}}
  %t = plan.exchange %kv offset(1) rows onward : !plan.rows<kv>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected `hops` from 1 to 3 with rows onward, and no others}}
  %t = plan.exchange %kv offset(1) rows needed hops(1) : !plan.rows<kv>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// What arrives and is never waited for.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected one `plan.wait` for what arrives}}
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %o = plan.attend %q, [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// What arrives and is never read.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  %o = plan.attend %q, [%kv]
  // expected-error @below {{expected a use of these rows}}
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
  // expected-error @below {{expected one use of '!plan.rows<partial>'}}
  %o = plan.attend %q, [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o1 = plan.attend %q, [%kv1] into(%o)
  %o2 = plan.attend %q, [%kv1] into(%o)
  plan.store %o2 : !plan.rows<partial>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected as many results of dkv as keys (1), got: 2}}
  %dq, %dkv:2 = plan.grads %q, [%kv] : !plan.rows<dkv>, !plan.rows<dkv>
  plan.store %dq, %dkv#0 : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// Rows cannot be read before they are there.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  // expected-error @below {{use of value '%t' expects different type than prior uses: '!plan.rows<kv>' vs '!plan.arrival<kv>'}}
  %o = plan.attend %q, [%kv, %t]
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
  %o = plan.attend %q, [%kv]
  plan.store %o : !plan.rows<partial>
}

// -----

// Queries and partial results stay where they are.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  // expected-error @below {{expected rows of kv or dkv, got: q}}
  %t = plan.exchange %q offset(1) : !plan.rows<q>
}

// -----

// All gradients are needed.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %dq, %dkv = plan.grads %q, [%kv] : !plan.rows<dkv>
  // expected-error @below {{expected rows of kv, got: dkv}}
  %t = plan.exchange %dkv offset(1) rows needed : !plan.rows<dkv>
}

// -----

// The second hop would lead back to the sender.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected `hops` from 1 to 1 with rows onward, and no others}}
  %t = plan.exchange %kv offset(2) rows onward hops(2) : !plan.rows<kv>
}
