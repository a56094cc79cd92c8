// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.document`: a row sees the keys of its own document.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 3 masks
// CHECK: mask(#attn.document)
// GENERIC: mask = #attn.document,
attn.problem @document mask(#attn.document) layout(sbhd) heads(8) dims(64) dtype(bf16)

// The usual names are not printed.
// CHECK: mask(#attn.document)
// CHECK: mask(#attn.document<"a", "b">)
// GENERIC: mask = #attn.document,
// GENERIC: mask = #attn.document<"a", "b">,
attn.problem @usual mask(#attn.document<"segment_ids_q", "segment_ids_kv">) layout(thd) heads(8) dims(64) dtype(bf16)
attn.problem @named mask(#attn.document<"a", "b">) layout(bshd, thd, thd, bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: names are identifiers, two different ones.
// expected-error @below {{expected an identifier as the name of an array of ids, got: "a-b"}}
attn.problem @p mask(#attn.document<"a-b", "b">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected different names for arrays of ids, got: "a" twice}}
attn.problem @p mask(#attn.document<"a", "a">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected ','}}
attn.problem @p mask(#attn.document<"ids">) layout(bshd) heads(8) dims(64) dtype(bf16)
