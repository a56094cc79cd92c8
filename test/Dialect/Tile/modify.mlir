// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile.modify`, and `tile.softmax_convert` and `tile.recompute_rows` where scores are modified.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

tile.kernel @k(%q: !tile.ptr<bf16>, %q_row: i64, %q0: i32, %k0: i32, %slope: f32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %rows = tile.alloc "row" : !tile.softmax_state<64, 4>

  // CHECK: tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  // CHECK-NEXT: ^bb0(%score: f32, %q_0: i32, %k: i32, %base: i32, %column_offset: f32):
  // CHECK-NEXT: math.fma %column_offset, %slope, %score : f32
  // CHECK-NEXT: tile.yield %{{.*}} : f32
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    %sum = math.fma %column_offset, %slope, %score : f32
    tile.yield %sum : f32
  }

  // CHECK: tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 3.000000e+01 becomes 2.000000e+01 {
  // CHECK-NEXT: ^bb0(%score: f32, {{.*}}, %column_offset: f32):
  // CHECK-NEXT: tile.yield %score : f32
  // CHECK-NEXT: } else {
  // CHECK-NEXT: ^bb0(%score: f32, {{.*}}, %column_offset: f32):
  // CHECK-NEXT: math.tanh %score : f32
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 30.0 becomes 20.0 {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  } else {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    %tanh = math.tanh %score : f32
    tile.yield %tanh : f32
  }

  // A score as a * b + c.
  // CHECK: tile.modify %s
  // CHECK: tile.yield %score, %slope, %column_offset : f32, f32, f32
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %slope, %column_offset : f32, f32, f32
  }

  // The same regions where scores are weighed.
  // CHECK: tile.softmax_convert %p, %s, %row scale 5.000000e-01 at(%q0, %k0) : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> modify {
  // CHECK-NEXT: ^bb0(%score: f32, {{.*}}, %column_offset: f32):
  tile.softmax_convert %p, %s, %rows scale 0.5 at(%q0, %k0) : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> modify {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %slope, %column_offset : f32, f32, f32
  }
  // CHECK: tile.softmax_convert {{.*}} within 3.000000e+01 becomes 2.000000e+01 {
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: tile.yield %score : f32
  // CHECK-NEXT: } else modify {
  // CHECK: math.tanh %score : f32
  tile.softmax_convert %p, %s, %rows scale 0.5 at(%q0, %k0) : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> within 30.0 becomes 20.0 {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  } else modify {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    %tanh = math.tanh %score : f32
    tile.yield %tanh : f32
  }

  // CHECK: tile.recompute_rows %s
  // CHECK: tile.yield %{{.*}} : i1
  // CHECK-NEXT: } modify {
  // CHECK-NEXT: ^bb0(%score: f32, %q_0: i32, %k: i32, %base: i32, %column_offset: f32):
  // CHECK-NEXT: math.absf %score : f32
  tile.recompute_rows %s at(%q0) rows(%q0) keys(%q0) from(%q, %q_row, %q, %q_row, %q, %q_row) into(%q, %q_row) dims(64, 64)
      scale 1.0 : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%row: i32, %key: i32):
    %below = arith.cmpi sle, %key, %row : i32
    tile.yield %below : i1
  } modify {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    %size = math.absf %score : f32
    tile.yield %size : f32
  }
}
