// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected the name of an `attn.problem` of the module, got: @q}}
attn.backward @grads of(@q)

// -----

attn.segments @s mask(#attn.causal) segments(4)
// expected-error @below {{expected the name of an `attn.problem` of the module, got: @s}}
attn.backward @grads of(@s)

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16) outputs(o)
// expected-error @below {{expected a problem with outputs(o, lse), got: one without lse}}
attn.backward @grads of(@p)

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16) tiles(128)
// expected-error @below {{expected a problem without segments and tiles, got: one with tiles}}
attn.backward @grads of(@p)

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.causal) layout(thd padded) heads(16, 4) dims(128) dtype(bf16) segments(4)
// expected-error @below {{expected a problem without segments and tiles, got: one with segments}}
attn.backward @grads of(@p)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected an identifier as its name, got: "a-b"}}
attn.backward @"a-b" of(@p)

// -----

// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "dq"}}
attn.problem @p mask(#attn.prefix<"dq">) layout(thd) heads(16, 4) dims(128) dtype(bf16)

// -----
// C5
// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.heads<#attn.full, #attn.causal>) layout(bshd) heads(2) dims(320) dtype(bf16) max_seqlen(4, 4)
// expected-error @below {{'attn.backward' op expected a mask that is the same for all heads, of head dims beyond 256, got: #attn.heads<#attn.full, #attn.causal>}}
attn.backward @b of(@p)

// -----
// C7
// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(320) dtype(bf16) max_seqlen(4, 4)
// expected-error @below {{'attn.backward' op expected head dims up to 256 with partial_kv, got: 320}}
attn.backward @b of(@p) partial_kv
