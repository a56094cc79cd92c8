// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.bias`: a number for each score is added.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: score([#attn.bias<"bias", bhqk>])
// GENERIC: score = [#attn.bias<"bias", bhqk>]
attn.problem @p0 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", bhqk>])
// CHECK: score([#attn.bias<"bias", k>])
// GENERIC: score = [#attn.bias<"bias", k>]
attn.problem @p1 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", k>])
// CHECK: score([#attn.bias<"bias", bh>])
// GENERIC: score = [#attn.bias<"bias", bh>]
attn.problem @p2 mask(#attn.causal) layout(thd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", bh>])
// CHECK: score([#attn.bias<"a", qk>, #attn.bias<"b", h>])
// GENERIC: score = [#attn.bias<"a", qk>, #attn.bias<"b", h>]
attn.problem @p3 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"a", qk>, #attn.bias<"b", h>])
// CHECK: score([#attn.bias<"bias", bk>])
// GENERIC: score = [#attn.bias<"bias", bk>]
attn.problem @p4 mask(#attn.causal) layout(thd, bshd, bshd, thd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", bk>])

// -----

// C1: the name is an identifier.
// expected-error @below {{expected an identifier as the name of an array of biases, got: ""}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"", k>])

// -----

// C2: axes are some of `bhqk`, in this order, at least one.
// expected-error @below {{expected the axes of a bias as some of `bhqk` in this order, got: kq}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", kq>])

// -----

// C2
// expected-error @below {{expected the axes of a bias as some of `bhqk` in this order, got: bb}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", bb>])

// -----

// C2
// expected-error @below {{expected the axes of a bias as some of `bhqk` in this order, got: hx}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", hx>])

// -----

// C13 of the problem.
// expected-error @below {{expected a dense layout of what a bias has an axis of (for packed ones: #attn.relative_bias), got: #attn.bias<"bias", hqk> with #attn.layout<thd>}}
attn.problem @p mask(#attn.causal) layout(bshd, thd, thd, bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", hqk>])

// -----

// expected-error @below {{expected ','}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.bias<"bias">])
