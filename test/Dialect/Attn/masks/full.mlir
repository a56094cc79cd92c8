// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.full`: every row sees every key. It has no constraints.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=8" | FileCheck %s --check-prefix=LAWS

// CHECK: mask(#attn.full)
// GENERIC: mask = #attn.full,
// LAWS: mask laws hold for 1 masks
attn.problem @full mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected no parameters of `#attn.full`}}
attn.problem @p mask(#attn.full<8>) layout(bshd) heads(8) dims(64) dtype(bf16)
