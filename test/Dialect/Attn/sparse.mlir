// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops around attention, and programs of them, as people write them and as the generic form spells them.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: attn.compress @pool mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16){{$}}
// GENERIC: "attn.compress"() <{dim_qk = 128 : i64, dim_v = 128 : i64, dtype = bf16, kv_heads = 4 : i64
// GENERIC-SAME: length = 32 : i64, mean, stride = 16 : i64, sym_name = "pool"}> : () -> ()
attn.compress @pool mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
// Clauses in another order; two head dims.
// CHECK: attn.compress @other mean length(64) stride(64) layout(bhsd) heads(2) dims(192, 128) dtype(f16)
attn.compress @other dtype(f16) dims(192, 128) heads(2) layout(bhsd) stride(64) length(64) mean
// The ends of what is allowed.
// CHECK: attn.compress @least mean length(1) stride(1) layout(sbhd) heads(1) dims(8) dtype(f32)
attn.compress @least mean length(1) stride(1) layout(sbhd) heads(1) dims(8, 8) dtype(f32)
// CHECK: attn.compress @most mean length(65536) stride(1) layout(bshd) heads(65536) dims(512) dtype(bf16) {attn.note = "why"}
attn.compress @most mean length(65536) stride(1) layout(bshd) heads(65536) dims(512) dtype(bf16) {attn.note = "why"}

// CHECK: attn.compress_backward @pool_grads of(@pool){{$}}
// GENERIC: "attn.compress_backward"() <{compress = @pool, sym_name = "pool_grads"}> : () -> ()
attn.compress_backward @pool_grads of(@pool)
// CHECK: attn.compress_backward @sums of(@pool) add(8){{$}}
attn.compress_backward @sums add(8) of(@pool)

// CHECK: attn.select @top prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(64, 4) dim(128) dtype(bf16){{$}}
attn.select @top prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)
// CHECK: attn.select @each prob length(1) stride(1) block(65536) count(1024) first(1023) local(1) rows(1) layout(bshd) heads(65536, 1) dim(256) dtype(f32) scale(1.250000e-01){{$}}
attn.select @each scale(0.125) prob length(1) stride(1) block(65536) count(1024) first(1023) local(1) rows(1)
  layout(bshd) heads(65536, 1) dim(256) dtype(f32)

// CHECK: attn.combine @gated sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16){{$}}
// GENERIC: "attn.combine"() <{branches = 3 : i64
// GENERIC-SAME: sigmoid, sym_name = "gated"}> : () -> ()
attn.combine @gated sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16)
// CHECK: attn.combine @narrow sigmoid branches(8) layout(bshd) heads(65536) dim(512) dtype(f16) gates(f16){{$}}
attn.combine @narrow gates(f16) dtype(f16) dim(512) heads(65536) layout(bshd) branches(8) sigmoid
// CHECK: attn.combine @mean uniform branches(1) layout(sbhd) heads(1) dim(8) dtype(f32){{$}}
attn.combine @mean uniform branches(1) layout(sbhd) heads(1) dim(8) dtype(f32)

// CHECK: attn.combine_backward @gated_grads of(@gated){{$}}
// GENERIC: "attn.combine_backward"() <{combine = @gated, sym_name = "gated_grads"}> : () -> ()
attn.combine_backward @gated_grads of(@gated)

// CHECK: attn.add @sum parts(3) layout(thd) heads(64) dim(128) dtype(bf16) from(f32){{$}}
// GENERIC: "attn.add"() <{
// GENERIC-SAME: from = f32
// GENERIC-SAME: parts = 3 : i64, sym_name = "sum"}> : () -> ()
attn.add @sum parts(3) layout(thd) heads(64) dim(128) dtype(bf16) from(f32)
// CHECK: attn.add @same parts(8) layout(bhsd) heads(1) dim(8) dtype(f16){{$}}
attn.add @same dtype(f16) dim(8) heads(1) layout(bhsd) parts(8)

// CHECK: attn.program @both attributes {attn.note = "why"} {
// CHECK-NEXT: %o_0 = attn.operand "o_0"
// CHECK-NEXT: %gates = attn.operand "gates"
// CHECK-NEXT: %lse = attn.operand "lse"
// CHECK-NEXT: %o = attn.call @gated(o_0 = %o_0, o_1 = %o_0, o_2 = %o_0, gates = %gates) -> (o)
// CHECK-NEXT: %delta_0, %dgates = attn.call @gated_grads(o_0 = %o_0, o_1 = %o_0, o_2 = %o_0, lse_0 = %lse, lse_1 = %lse, lse_2 = %lse, gates = %gates, do = %o) -> (delta_0, dgates)
// CHECK-NEXT: attn.call @gated(o_0 = %o, o_1 = %o, o_2 = %o, gates = %gates){{$}}
// CHECK-NEXT: attn.result "y" = %o
// CHECK-NEXT: attn.result "dgates" = %dgates
// CHECK-NEXT: }
// GENERIC: "attn.program"() <{sym_name = "both"}> ({
// GENERIC-NEXT: "attn.operand"() <{name = "o_0"}> : () -> !attn.tensor
// GENERIC: "attn.call"({{.*}}) <{callee = @gated, operand_names = ["o_0", "o_1", "o_2", "gates"], result_names = ["o"]}>
// GENERIC-SAME: : (!attn.tensor, !attn.tensor, !attn.tensor, !attn.tensor) -> !attn.tensor
// GENERIC: "attn.result"({{.*}}) <{name = "y"}> : (!attn.tensor) -> ()
attn.program @both attributes {attn.note = "why"} {
  %0 = attn.operand "o_0"
  %1 = attn.operand "gates"
  %4 = attn.operand "lse"
  %2 = attn.call @gated("o_0" = %0, o_1 = %0, o_2 = %0, gates = %1) -> (o)
  %3:2 = attn.call @gated_grads(o_0 = %0, o_1 = %0, o_2 = %0, lse_0 = %4, lse_1 = %4, lse_2 = %4, gates = %1, do = %2) -> (delta_0, dgates)
  attn.call @gated(o_0 = %2, o_1 = %2, o_2 = %2, gates = %1)
  attn.result "y" = %2
  attn.result "dgates" = %3#1
}
