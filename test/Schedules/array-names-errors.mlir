// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays of a problem that have the name of an argument of its kernels.
//
// RUN: attn-opt %s -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -split-input-file -verify-diagnostics

// A stride.
// expected-error @below {{'attn.problem' op expected names of arrays and gradients that no argument of its kernels has, got: "q_row"}}
attn.problem @p mask(#attn.prefix<"q_row">) layout(bshd) heads(1) dims(64) dtype(bf16)

// -----

// A buffer of the workspace.
// expected-error @below {{that no argument of its kernels has, got: "partial_o"}}
attn.problem @p mask(#attn.prefix<"partial_o">) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// A buffer of problems with ids.
// expected-error @below {{that no argument of its kernels has, got: "seqlens_q"}}
attn.problem @p mask(#attn.causal) layout(thd padded) heads(2) dims(16) dtype(f16) score([#attn.alibi<"seqlens_q">]) segments(4)

// -----

// The bits of a block map.
// expected-error @below {{that no argument of its kernels has, got: "a_bits"}}
attn.problem @p mask(#attn.block_map<"a", "a_bits", q = 2, kv = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// Partial sums of a gradient.
attn.problem @p mask(#attn.prefix<"partial_dbias">) layout(bshd) heads(2) dims(16) dtype(bf16) score([#attn.bias<"bias", hk>])
// expected-error @below {{'attn.backward' op expected names of arrays and gradients that no argument of its kernels has, got: "partial_dbias"}}
attn.backward @b of(@p) requires_grad(["bias"])
