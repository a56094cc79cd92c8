// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program may call an op and the backward op that names it, in either order of the ops.
//
// RUN: attn-opt %s -attn-choose-schedule=target=cpu -convert-attn-to-tile | FileCheck %s

attn.combine @gated sigmoid branches(2) layout(thd) heads(2) dim(64) dtype(bf16) gates(bf16)
attn.combine_backward @gated_grads of(@gated)
attn.compress_backward @pool_grads of(@pool)
attn.compress @pool mean length(32) stride(16) layout(thd) heads(2) dims(64) dtype(bf16)
// CHECK-LABEL: program.def @both_program {
// CHECK: program.launch @gated grid
// CHECK: program.launch @gated_grads grid
// CHECK: program.launch @pool_offsets grid
// CHECK: program.launch @pool grid
// CHECK: program.launch @pool_grads grid
attn.program @both {
  %a = attn.operand "a"
  %b = attn.operand "b"
  %gates = attn.operand "gates"
  %lse = attn.operand "lse"
  %cu = attn.operand "cu_seqlens"
  %o = attn.call @gated(o_0 = %a, o_1 = %b, gates = %gates) -> (o)
  %dgates = attn.call @gated_grads(o_0 = %a, o_1 = %b, lse_0 = %lse, lse_1 = %lse, gates = %gates, do = %o) -> (dgates)
  %ck, %cv, %cu_c = attn.call @pool(k = %a, v = %b, cu_seqlens = %cu)
      -> (compressed_k, compressed_v, cu_seqlens_compressed)
  %dk = attn.call @pool_grads(dcompressed_k = %ck, dcompressed_v = %cv, k = %a, cu_seqlens = %cu,
                              cu_seqlens_compressed = %cu_c) -> (dk)
  attn.result "dgates" = %dgates
  attn.result "dk" = %dk
}
