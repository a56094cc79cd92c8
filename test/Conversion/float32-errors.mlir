// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of f32 are the target cpu's alone.
//
// RUN: attn-opt %s -convert-attn-to-tile="target=sm_80" -split-input-file -verify-diagnostics
// RUN: attn-opt %s -convert-attn-to-tile="target=sm_90a" -split-input-file -verify-diagnostics

// expected-error-re @below {{'attn.problem' op expected dtype bf16 or f16 for target `sm_{{80|90a}}` (`cpu`: bf16, f16 or f32), got: 'f32'}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(f32)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(f32)
// expected-error-re @below {{'attn.backward' op expected dtype bf16 or f16 for target `sm_{{80|90a}}` (`cpu`: bf16, f16 or f32), got: 'f32'}}
attn.backward @grads of(@p)
