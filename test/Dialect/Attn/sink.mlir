// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A problem's sink: a number, or an array of one for each head.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: @off_by_one {{.*}} dtype(bf16) sink(0.000000e+00)
// GENERIC: sink = 0.000000e+00 : f64
attn.problem @off_by_one mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) sink(0.0)
// CHECK: @learned {{.*}} dtype(bf16) score([#attn.softcap<3.000000e+01>]) sink("sinks") outputs(o)
// GENERIC: sink = "sinks"
attn.problem @learned mask(#attn.causal) layout(thd) heads(8, 2) dims(64) dtype(bf16) score([#attn.softcap<30.0>])
  sink("sinks") outputs(o)

// -----

// C14: a sink is a number from -2^60 to 2^60 or an identifier.
// expected-error @below {{expected a sink from -2^60 to 2^60 or the name of an array of them, got: 1.000000e+30}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) sink(1.0e30)

// -----

// C14
// expected-error @below {{expected a sink from -2^60 to 2^60 or the name of an array of them, got: "a b"}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) sink("a b")

// -----

// C14
// expected-error @below {{expected a sink from -2^60 to 2^60 or the name of an array of them, got: ""}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) sink("")

// -----

// C8: arrays are called like nothing else.
// expected-error @below {{expected a name for the modifier's array that nothing else of the problem has, got: "lse"}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) sink("lse")

// -----

// expected-error @below {{expected floating point literal}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) sink(sinks)
