// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of arrays.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | attn-opt -split-input-file -verify-diagnostics | FileCheck %s

attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(16) dtype(bf16)
  score([#attn.bias<"bias", hqk>, #attn.alibi<"slopes">, #attn.score<"s * gate[h]">]) sink("sinks")
// CHECK: attn.backward @all of(@p) requires_grad(["sinks", "bias", "slopes", "gate"])
attn.backward @all of(@p) requires_grad(["sinks", "bias", "slopes", "gate"])
// CHECK: attn.backward @one of(@p) deterministic dlse requires_grad(["gate"])
attn.backward @one of(@p) deterministic dlse requires_grad(["gate"])
// Of arrays that are not named there are none.
// CHECK: attn.backward @none of(@p)
attn.backward @none of(@p)

// -----

// C6: `learned` names arrays of score modifiers or sinks, each once, and `d` with such a name is none of another tensor.
// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.document) layout(bshd) heads(2) dims(16) dtype(bf16) score([#attn.bias<"bias", hqk>])
// expected-error @below {{expected names of arrays of score modifiers or sinks in `requires_grad`, each once, got: "document_q"}}
attn.backward @b of(@p) requires_grad(["document_q"])

// -----

// C6
// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(16) dtype(bf16) score([#attn.bias<"bias", hqk>])
// expected-error @below {{expected names of arrays of score modifiers or sinks in `requires_grad`, each once, got: "bias"}}
attn.backward @b of(@p) requires_grad(["bias", "bias"])

// -----

// C6
// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(16) dtype(bf16) score([#attn.bias<"bias", hqk>]) sink("dbias")
// expected-error @below {{expected another name for an array: a gradient has the name of another tensor, got: dbias}}
attn.backward @b of(@p) requires_grad(["bias"])
