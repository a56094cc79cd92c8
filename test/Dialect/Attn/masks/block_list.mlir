// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.block_list`: tiles of rows see the blocks of keys on their lists, which have one width.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 5 masks
// CHECK: mask(#attn.block_list<"a", rows = 2, keys = 3>)
// GENERIC: mask = #attn.block_list<"a", rows = 2, keys = 3>,
attn.problem @m0 mask(#attn.block_list<"a", rows = 2, keys = 3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.block_list<"a", rows = 1, keys = 1, per_head>)
attn.problem @m1 mask(#attn.block_list<"a", keys = 1, per_head, rows = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Each kv head has lists by default.
// CHECK: mask(#attn.block_list<"a", rows = 1048576, keys = 2>)
// GENERIC: mask = #attn.block_list<"a", rows = 1048576, keys = 2>,
attn.problem @m2 mask(#attn.block_list<"a", rows = 1048576, per_kv_head, keys = 2>) layout(thd) heads(8, 2) dims(64) dtype(bf16)
// CHECK: mask(#attn.not<#attn.block_list<"a", rows = 3, keys = 2, shared>>)
attn.problem @m3 mask(#attn.not<#attn.block_list<"a", shared, rows = 3, keys = 2>>) layout(thd padded) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.and<#attn.block_list<"a", rows = 2, keys = 2>, #attn.causal>)
attn.problem @m4 mask(#attn.and<#attn.block_list<"a", rows = 2, keys = 2>, #attn.causal>) layout(bshd) heads(8, 4) dims(64) dtype(bf16)

// -----

// C1: the name is an identifier.
// expected-error @below {{expected an identifier as the name of an array of a block list, got: "a b"}}
attn.problem @p mask(#attn.block_list<"a b", rows = 2, keys = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: `rows` and `keys` are given.
// expected-error @below {{expected an array, `rows` and `keys` of a block list, as in #attn.block_list<"lists", rows = 64, keys = 64>}}
attn.problem @p mask(#attn.block_list<"a", rows = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: within [1, 2^20].
// expected-error @below {{expected `keys` of a block list within [1, 2^20], got: 0}}
attn.problem @p mask(#attn.block_list<"a", rows = 2, keys = 0>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2
// expected-error @below {{expected `rows` of a block list within [1, 2^20], got: 1048577}}
attn.problem @p mask(#attn.block_list<"a", rows = 1048577, keys = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{`rows` given twice}}
attn.problem @p mask(#attn.block_list<"a", rows = 2, rows = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected `rows`, `keys`, `shared`, `per_kv_head` or `per_head`, got: q}}
attn.problem @p mask(#attn.block_list<"a", q = 128>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// Each sequence has lists of its own in any case.
// expected-error @below {{expected `rows`, `keys`, `shared`, `per_kv_head` or `per_head`, got: per_sequence}}
attn.problem @p mask(#attn.block_list<"a", rows = 2, keys = 2, per_sequence>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected one of `shared`, `per_kv_head` and `per_head`, got: `shared` too}}
attn.problem @p mask(#attn.block_list<"a", rows = 1, keys = 1, per_head, shared>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// One array is of one mask.
// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "a"}}
attn.problem @p mask(#attn.or<#attn.block_list<"a", rows = 2, keys = 2>, #attn.block_list<"a", rows = 2, keys = 4>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// The offsets of lists and the lengths of arrays are computed, and no array of the caller may have their names.
// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "a_offsets"}}
attn.problem @p mask(#attn.and<#attn.block_list<"a", rows = 1, keys = 1>, #attn.prefix<"a_offsets">>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "a_entries"}}
attn.problem @p mask(#attn.or<#attn.prefix<"a_entries">, #attn.block_list<"a", rows = 2, keys = 2>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{a mask without block lists (a block map takes pieces)}}
attn.problem @p mask(#attn.block_list<"lists", rows = 64, keys = 64>) layout(thd pieces) heads(8) dims(64) dtype(bf16)
