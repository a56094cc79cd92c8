// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs and the ops that they call: round trips, and constraints.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | attn-opt -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: attn.compress @pool mean length(32) stride(16) layout(thd) heads(4) dims(128, 64) dtype(bf16)
attn.compress @pool layout(thd) mean stride(16) length(32) heads(4) dims(128, 64) dtype(bf16)
// CHECK: attn.compress_backward @pool_grads of(@pool) add(2)
attn.compress_backward @pool_grads add(2) of(@pool)
// CHECK: attn.select @top prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(bhsd) heads(64, 4) dim(128) dtype(f16) scale(5.000000e-01)
attn.select @top prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(bhsd) heads(64, 4) dim(128) dtype(f16) scale(0.5)
// CHECK: attn.combine @gated sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16) gates(bf16)
attn.combine @gated sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16) gates(bf16)
// CHECK: attn.combine_backward @gated_grads of(@gated)
attn.combine_backward @gated_grads of(@gated)
// CHECK: attn.add @sum parts(3) layout(thd) heads(64) dim(128) dtype(bf16) from(f32)
attn.add @sum parts(3) layout(thd) heads(64) dim(128) dtype(bf16) from(f32)
// CHECK: attn.program @means {
// CHECK-NEXT: %k = attn.operand "k"
// CHECK-NEXT: %cu = attn.operand "cu"
// CHECK-NEXT: %compressed_k, %cu_seqlens_compressed = attn.call @pool(k = %k, v = %k, cu_seqlens = %cu) -> (compressed_k, cu_seqlens_compressed)
// CHECK-NEXT: attn.result "means" = %compressed_k
attn.program @means {
  %k = attn.operand "k"
  %cu = attn.operand "cu"
  %a, %b = attn.call @pool(k = %k, v = %k, cu_seqlens = %cu) -> (compressed_k, cu_seqlens_compressed)
  attn.result "means" = %a
}

// -----

// expected-error @below {{expected an `attn.result`, got: none}}
attn.program @p {
  %k = attn.operand "k"
}

// -----

attn.program @p {
  %k = attn.operand "k"
  // expected-error @below {{expected a result of an `attn.call`, got: an operand}}
  attn.result "k2" = %k
}

// -----

attn.add @sum parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  %s = attn.call @sum(part_0 = %k) -> (result)
  // expected-error @below {{expected distinct names of operands and results, got: "k" twice}}
  attn.result "k" = %s
}

// -----

attn.add @sum parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  %s = attn.call @sum(part_0 = %k) -> (result)
  attn.result "a" = %s
  // expected-error @below {{expected each tensor to be a result once, got: a second time}}
  attn.result "b" = %s
}

// -----

attn.program @p {
  %k = attn.operand "k"
  // expected-error @below {{expected the name of a computation in the module, got: @nobody}}
  %s = attn.call @nobody(part_0 = %k) -> (result)
  attn.result "a" = %s
}

// -----

attn.program @p {
  // expected-error @below {{expected an identifier as a name, got: "a b"}}
  %k = attn.operand "a b"
}

// -----

attn.add @sum parts(2) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  // expected-error @below {{expected each name once, got: `part_0` twice}}
  %s = attn.call @sum(part_0 = %k, part_0 = %k) -> (result)
  attn.result "a" = %s
}
