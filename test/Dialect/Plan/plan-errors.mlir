// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected from 1 to 65536 ranks, got: 0}}
plan.def @p of(@problem) ranks(0) sharding(#plan.contiguous) {}

// -----

// expected-error @below {{expected a `plan.store` of partial rows as the last step}}
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
}

// -----

// expected-error @below {{expected a `plan.store` of dq and dkv rows as the last step}}
plan.def @p of(@problem) ranks(1) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %dq, %dkv = plan.grads %q, [%kv] : !plan.rows<dkv>
  plan.store %dq : !plan.rows<dq>
}

// -----

plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  // expected-error @below {{expected rows of q or kv, got: dq}}
  %q = plan.local : !plan.rows<dq>
}

// -----

plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected an offset to another rank, got: -4 of 4}}
  %t = plan.exchange %kv offset(-4) : !plan.rows<kv>
}

// -----

plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected groups whose size divides 4 ranks, got: within(3)}}
  %t = plan.exchange %kv offset(1) within(3) : !plan.rows<kv>
}

// -----

plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected `hops` of 1 or more with rows onward, and no others}}
  %t = plan.exchange %kv offset(1) rows onward : !plan.rows<kv>
}

// -----

plan.def @p of(@problem) ranks(4) sharding(#plan.contiguous) {
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected `hops` of 1 or more with rows onward, and no others}}
  %t = plan.exchange %kv offset(1) rows needed hops(1) : !plan.rows<kv>
}

// -----

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

// A partial result that two steps go on from would count twice.
plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %t = plan.exchange %kv offset(1) : !plan.rows<kv>
  // expected-error @below {{expected one use of a partial result}}
  %o = plan.attend %q, [%kv]
  %kv1 = plan.wait %t : !plan.arrival<kv>
  %o1 = plan.attend %q, [%kv1] into(%o)
  %o2 = plan.attend %q, [%kv1] into(%o)
  plan.store %o2 : !plan.rows<partial>
}

// -----

plan.def @p of(@problem) ranks(2) sharding(#plan.contiguous) backward {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  // expected-error @below {{expected as many results of dkv as keys (1), got: 2}}
  %dq, %dkv:2 = plan.grads %q, [%kv] : !plan.rows<dkv>, !plan.rows<dkv>
  plan.store %dq, %dkv#0 : !plan.rows<dq>, !plan.rows<dkv>
}

// -----

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
