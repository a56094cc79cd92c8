// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of f32 are the target cpu's alone.
//
// RUN: attn-opt %s -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -split-input-file -verify-diagnostics
// RUN: attn-opt %s -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -split-input-file -verify-diagnostics

// expected-error-re @below {{'attn.problem' op expected dtype bf16 or f16 for target `sm_{{80|90a}}` (`cpu`: bf16, f16 or f32), got: 'f32'}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(f32)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(f32) {sym_visibility = "private"}
// expected-error-re @below {{'attn.backward' op expected dtype bf16 or f16 for target `sm_{{80|90a}}` (`cpu`: bf16, f16 or f32), got: 'f32'}}
attn.backward @grads of(@p)
