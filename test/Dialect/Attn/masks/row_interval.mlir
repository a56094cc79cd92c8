// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.row_interval`: each row sees the keys of an interval of its own.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 5 masks
// CHECK: mask(#attn.row_interval<begin = "a", end = "b">)
// GENERIC: mask = #attn.row_interval<begin = "a", end = "b">,
attn.problem @m0 mask(#attn.row_interval<begin = "a", end = "b">) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.row_interval<end = "b">)
// GENERIC: mask = #attn.row_interval<end = "b">,
attn.problem @m1 mask(#attn.row_interval<end = "b">) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.row_interval<begin = "a">)
// GENERIC: mask = #attn.row_interval<begin = "a">,
attn.problem @m2 mask(#attn.row_interval<begin = "a">) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.row_interval<begin = "a", end = "b", per_head>)
// GENERIC: mask = #attn.row_interval<begin = "a", end = "b", per_head>,
attn.problem @m3 mask(#attn.row_interval<begin = "a", end = "b", per_head>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.row_interval<begin = "a", end = "b", per_kv_head>)
// GENERIC: mask = #attn.row_interval<begin = "a", end = "b", per_kv_head>,
attn.problem @m4 mask(#attn.row_interval<per_kv_head, end = "b", begin = "a">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: at least one of `begin` and `end` is given.
// expected-error @below {{expected `#attn.row_interval` with `begin`, `end` or both (`#attn.full` has no bound)}}
attn.problem @p mask(#attn.row_interval<per_head>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: names are identifiers.
// expected-error @below {{expected an identifier as the name of an array of bounds, got: "a b"}}
attn.problem @p mask(#attn.row_interval<begin = "a b">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected an identifier as the name of an array of bounds, got: ""}}
attn.problem @p mask(#attn.row_interval<begin = "">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: different ones.
// expected-error @below {{expected different names for arrays of bounds, got: "a" twice}}
attn.problem @p mask(#attn.row_interval<begin = "a", end = "a">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{`end` given twice}}
attn.problem @p mask(#attn.row_interval<end = "a", end = "b">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected `begin`, `end`, `shared`, `per_kv_head` or `per_head`, got: left}}
attn.problem @p mask(#attn.row_interval<left = "a">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '<'}}
// expected-error @below {{expected `#attn.row_interval` with `begin`, `end` or both}}
attn.problem @p mask(#attn.row_interval) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected one of `shared`, `per_kv_head` and `per_head`, got: `shared` too}}
attn.problem @p mask(#attn.row_interval<begin = "a", per_head, shared>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
