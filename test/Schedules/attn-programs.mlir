// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.program becomes one program.def: callees' steps over shared tensors, sizes in those of the caller's tensors.
// Results that nobody wants are scratch. Callees are programs of their own beside it.
//
// RUN: attn-opt %s -attn-choose-schedule=target=cpu -convert-attn-to-tile | FileCheck %s

attn.compress @pool mean length(32) stride(16) layout(thd) heads(2) dims(64) dtype(f32)
attn.problem @compressed mask(#attn.pooled<length = 32, stride = 16>) layout(thd) heads(4, 2) dims(64) dtype(f32)
// CHECK: program.def @pool_program
// CHECK: program.def @compressed_program
// CHECK: program.def @both_program {
// CHECK-NEXT: %q = program.tensor "q" operand : f32 [total_q, 4, 64] strided(0, 1)
// CHECK-NEXT: %k = program.tensor "k" operand : f32 [total_kv, 2, 64] strided(0, 1)
// CHECK-NEXT: %v = program.tensor "v" operand : f32 [total_kv, 2, 64] strided(0, 1)
// CHECK-NEXT: %cu = program.tensor "cu" array : i32 [batch + 1]
// CHECK-NEXT: %o = program.tensor "o" result : f32 [total_q, 4, 64] strided(0, 1)
// CHECK-NEXT: %pool_compressed_k = program.buffer "pool_compressed_k" : f32 [floor_div(total_kv, 16), 2, 64]
// CHECK-NEXT: %pool_compressed_v = program.buffer "pool_compressed_v" : f32 [floor_div(total_kv, 16), 2, 64]
// CHECK-NEXT: %[[CU:.*]] = program.buffer "pool_cu_seqlens_compressed" : i32 [batch + 1]
// CHECK-NEXT: program.launch @pool_offsets {{.*}}(write %[[CU]]{{.*}}, read %cu, size batch)
// CHECK-NEXT: program.launch @pool {{.*}}write %pool_compressed_k
// CHECK-NEXT: %[[LSE:.*]] = program.buffer "compressed_lse" : f32 [4, total_q]
// CHECK-NEXT: program.launch @compressed {{.*}}(read %q, read %pool_compressed_k, read %pool_compressed_v, write %o or zero, scratch %[[LSE]], read %cu, read %[[CU]], size batch, size total_q
attn.program @both {
  %q = attn.operand "q"
  %k = attn.operand "k"
  %v = attn.operand "v"
  %cu = attn.operand "cu"
  %ck, %cv, %cu_c = attn.call @pool(k = %k, v = %v, cu_seqlens = %cu) -> (compressed_k, compressed_v, cu_seqlens_compressed)
  %o = attn.call @compressed(q = %q, k = %ck, v = %cv, cu_seqlens_q = %cu, cu_seqlens_kv = %cu_c) -> (o)
  attn.result "o" = %o
}
