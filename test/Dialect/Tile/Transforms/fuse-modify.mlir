// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-fuse-modify`: the last modifier becomes part of `tile.softmax_convert`, where no test
// lies between.
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(tile.kernel(tile-fuse-modify))" | FileCheck %s

// CHECK-LABEL: tile.kernel @k
tile.kernel @k(%q0: i32, %k0: i32, %partial: i1) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %two = arith.constant 2.0 : f32

  // The last of two, with its bound.
  // CHECK: scf.if
  // CHECK-NEXT: tile.modify %s at(%k0, %k0) : !tile.frag<64x64, 4> {
  // CHECK: arith.addf
  // CHECK-NOT: tile.modify
  // CHECK: tile.softmax_convert %p, %s, %row scale 5.000000e-01 at(%q0, %k0) : {{.*}} within 3.000000e+01 becomes 2.000000e+01 {
  // CHECK: tile.yield %score : f32
  // CHECK: } else modify {
  // CHECK: math.tanh
  scf.if %partial {
    tile.modify %s at(%k0, %k0) : !tile.frag<64x64, 4> {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      %sum = arith.addf %score, %column_offset : f32
      tile.yield %sum : f32
    }
    tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 30.0 becomes 20.0 {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      tile.yield %score : f32
    } else {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      %tanh = math.tanh %score : f32
      tile.yield %tanh : f32
    }
    tile.softmax_convert %p, %s, %row scale 0.5 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  }

  // A segment with a test: its tiles are few, and the formula for all scores is enough.
  // CHECK: scf.if
  // CHECK-NEXT: tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  // CHECK: math.tanh
  // CHECK: tile.apply_mask
  // CHECK: tile.softmax_convert %p, %s, %row scale 5.000000e-01 : !tile.register_operand
  scf.if %partial {
    tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 30.0 {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      tile.yield %score : f32
    } else {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      %tanh = math.tanh %score : f32
      tile.yield %tanh : f32
    }
    tile.apply_mask %s at(%q0, %k0) : !tile.frag<64x64, 4> {
    ^bb0(%q: i32, %k: i32):
      tile.yield %partial : i1
    }
    tile.softmax_convert %p, %s, %row scale 0.5 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  }

  // One body for all tiles: the test is in a branch, and may lie between.
  // CHECK: scf.if
  // CHECK-NEXT: tile.modify {{.*}} within 3.000000e+01
  // CHECK: tile.softmax_convert %p, %s, %row scale 5.000000e-01 : !tile.register_operand
  scf.if %partial {
    tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 30.0 {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      tile.yield %score : f32
    } else {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      %tanh = math.tanh %score : f32
      tile.yield %tanh : f32
    }
    scf.if %partial {
      tile.apply_mask %s at(%q0, %k0) : !tile.frag<64x64, 4> {
      ^bb0(%q: i32, %k: i32):
        tile.yield %partial : i1
      }
    }
    tile.softmax_convert %p, %s, %row scale 0.5 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  }

  // A cap so low that maxima have no room below it: scores are looked at.
  // CHECK: scf.if
  // CHECK-NEXT: tile.softmax_convert {{.*}} within 3.000000e+01 {
  scf.if %partial {
    tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 30.0 becomes 11.0 {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      tile.yield %score : f32
    } else {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
      %tanh = math.tanh %score : f32
      tile.yield %tanh : f32
    }
    tile.softmax_convert %p, %s, %row scale 0.5 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  }
}
