// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// Dropout: a probability, and the name of the array of words that pairs are drawn with.

// CHECK: @dropped {{.*}} dtype(bf16) dropout(1.000000e-01, "seed")
// GENERIC: dropout = 1.000000e-01 : f64
// GENERIC-SAME: seed = "seed"
attn.problem @dropped mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) dropout(0.1, "seed")
// CHECK: @with_others {{.*}} score([#attn.alibi]) sink("sinks") dropout(5.000000e-01, "words") outputs(o) expected_seqlen(64)
attn.problem @with_others mask(#attn.causal) layout(thd) heads(4) dims(64) dtype(bf16) score([#attn.alibi]) sink("sinks")
  dropout(0.5, "words") outputs(o) expected_seqlen(64)
// Of nothing that is dropped there is no array, so its name is free.
// CHECK: @nothing {{.*}} sink("seed") dropout(0.000000e+00, "seed")
attn.problem @nothing mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) sink("seed") dropout(0.0, "seed")

// -----

// expected-error @below {{expected a dropout probability from 0 to below 1 - 2^-16, got: 1.000000e+00}}
attn.problem @all mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) dropout(1.0, "seed")

// -----

// expected-error @below {{expected a dropout probability from 0 to below 1 - 2^-16, got: -1.000000e-01}}
attn.problem @negative mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) dropout(-0.1, "seed")

// -----

// expected-error @below {{expected a dropout probability from 0 to below 1 - 2^-16, got: nan}}
attn.problem @nan mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) dropout(0x7FF8000000000000, "seed")

// -----

// expected-error @below {{expected an identifier as the name of the dropout's array, got: "my seed"}}
attn.problem @name mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) dropout(0.1, "my seed")

// -----

// expected-error @below {{expected a name for the dropout's array that nothing else of the problem has, got: "lse"}}
attn.problem @taken mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) dropout(0.1, "lse")

// -----

// expected-error @below {{expected a name for the dropout's array that nothing else of the problem has, got: "sinks"}}
attn.problem @twice mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) sink("sinks") dropout(0.1, "sinks")

// -----

// expected-error @below {{expected both a probability and the name of an array in dropout(0.1, "seed"), got: one}}
"attn.problem"() <{sym_name = "one", mask = #attn.full, q_layout = #attn.layout<bshd>, k_layout = #attn.layout<bshd>,
  v_layout = #attn.layout<bshd>, o_layout = #attn.layout<bshd>, heads = 4 : i64, kv_heads = 4 : i64, dim_qk = 64 : i64,
  dim_v = 64 : i64, dtype = bf16, dropout = 1.000000e-01 : f64}> : () -> ()
