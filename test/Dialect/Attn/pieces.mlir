// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors that hold parts of sequences, of keys or of heads: what is printed is what was read.
//
// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK: attn.problem @pieces mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16)
attn.problem @pieces mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16)
// CHECK-NEXT: attn.problem @begin mask(#attn.causal) layout(thd pieces) heads(4) dims(64) dtype(bf16) partial(out)
attn.problem @begin mask(#attn.causal) layout(thd pieces) heads(4) dims(64) dtype(bf16) partial(out)
// CHECK-NEXT: @middle {{.*}} partial(in, out) of_heads(4, 32, 8) expected_seqlen(65536)
attn.problem @middle partial(out, in) of_heads(4, 32, 8) mask(#attn.causal) layout(thd pieces) heads(4, 1) dims(64) dtype(bf16) expected_seqlen(65536)
// A part of the query heads of one kv head.
// CHECK-NEXT: @end {{.*}} sink(5.000000e-01) partial(in) of_heads(5, 32, 8)
attn.problem @end mask(#attn.causal) layout(thd pieces) heads(3, 1) dims(64) dtype(bf16) sink(0.5) partial(in) of_heads(5, 32, 8)
// CHECK-NEXT: attn.backward @grads of(@pieces) deterministic partial_kv delta float32_dq float32_dkv add_dq
attn.backward @grads of(@pieces) add_dq delta float32_dkv float32_dq partial_kv deterministic
// CHECK-NEXT: attn.problem @biased
attn.problem @biased mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16) score([#attn.alibi<"slopes">])
// CHECK-NEXT: attn.backward @learned of(@biased) add_dq add_array_grads requires_grad(["slopes"])
attn.backward @learned of(@biased) requires_grad(["slopes"]) add_array_grads add_dq
// CHECK-NEXT: attn.gather_rows @pack parts(1) heads(8) dim(128) dtype(bf16)
attn.gather_rows @pack dtype(bf16) heads(8) dim(128) parts(1)
// CHECK-NEXT: attn.gather_rows @sum parts(3) heads(2) dim(64) dtype(f16) from(f32)
attn.gather_rows @sum parts(3) heads(2) dim(64) dtype(f16) from(f32)
// CHECK-NEXT: attn.problem @single mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16) single_pieces keep_padding
attn.problem @single keep_padding single_pieces mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16)
