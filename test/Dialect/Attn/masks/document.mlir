// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.document`: a row sees the keys of its own document. It has no
// constraints; that a problem with it has dense layouts is C5 of the problem.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 1 masks
// CHECK: mask(#attn.document)
// GENERIC: mask = #attn.document,
attn.problem @document mask(#attn.document) layout(sbhd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{op expected dense layouts with a mask that reads segment ids (packed sequences are isolated without it), got: #attn.document with #attn.layout<thd>}}
attn.problem @p mask(#attn.document) layout(bshd, thd, thd, bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected no parameters of `#attn.document`}}
attn.problem @p mask(#attn.document<"ids">) layout(bshd) heads(8) dims(64) dtype(bf16)
