// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.block_map`: blocks of rows see the blocks of keys that they list.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 4 masks
// CHECK: mask(#attn.block_map<"a", "b", q = 2, kv = 3>)
// GENERIC: mask = #attn.block_map<"a", "b", q = 2, kv = 3>,
attn.problem @m0 mask(#attn.block_map<"a", "b", q = 2, kv = 3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.block_map<"a", "b", q = 1, kv = 1, per_head>)
attn.problem @m1 mask(#attn.block_map<"a", "b", kv = 1, q = 1, per_head>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.block_map<"a", "b", q = 1048576, kv = 2, per_sequence, per_kv_head>)
// GENERIC: mask = #attn.block_map<"a", "b", q = 1048576, kv = 2, per_sequence, per_kv_head>,
attn.problem @m2 mask(#attn.block_map<"a", "b", per_sequence, q = 1048576, per_kv_head, kv = 2>) layout(thd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.block_map<"a", "b", q = 3, kv = 2, per_sequence>>)
attn.problem @m3 mask(#attn.not<#attn.block_map<"a", "b", q = 3, kv = 2, per_sequence, shared>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: names are identifiers.
// expected-error @below {{expected an identifier as the name of an array of a block map, got: "a b"}}
attn.problem @p mask(#attn.block_map<"a b", "c", q = 2, kv = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: two different ones.
// expected-error @below {{expected different names for arrays of a block map, got: "a" twice}}
attn.problem @p mask(#attn.block_map<"a", "a", q = 2, kv = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: `q` and `kv` are given.
// expected-error @below {{expected two arrays, `q` and `kv` of a block map, as in #attn.block_map<"offsets", "columns", q = 128, kv = 128>}}
attn.problem @p mask(#attn.block_map<"a", "b", q = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: within [1, 2^20].
// expected-error @below {{expected `kv`, of a block of a block map, within [1, 2^20], got: 0}}
attn.problem @p mask(#attn.block_map<"a", "b", q = 2, kv = 0>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected `q`, of a block of a block map, within [1, 2^20], got: 1048577}}
attn.problem @p mask(#attn.block_map<"a", "b", q = 1048577, kv = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{`q` given twice}}
attn.problem @p mask(#attn.block_map<"a", "b", q = 2, q = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected `q`, `kv`, `per_sequence`, `shared`, `per_kv_head` or `per_head`, got: block}}
attn.problem @p mask(#attn.block_map<"a", "b", block = 128>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// One array is of one map.
// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "a"}}
attn.problem @p mask(#attn.or<#attn.block_map<"a", "b", q = 2, kv = 2>, #attn.block_map<"a", "b", q = 2, kv = 4>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "b_entries"}}
attn.problem @p mask(#attn.or<#attn.prefix<"b_entries">, #attn.block_map<"a", "b", q = 2, kv = 2>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected one of `shared`, `per_kv_head` and `per_head`, got: `per_kv_head` too}}
attn.problem @p mask(#attn.block_map<"offsets", "columns", q = 64, kv = 64, per_head, per_kv_head>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
