// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile.modify` as text: one verb with a lambda, or two of them and a bound. And f32
// expressions.
//
// RUN: attn-translate %s | FileCheck %s

// CHECK: #include "attn/tile.h"
tile.kernel @scores(%q0: i32, %k0: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 1>
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 1>
  %row = tile.alloc "row" : !tile.softmax_state<64, 1>
  %half = arith.constant 0.5 : f32
  %minus = arith.constant -2.5 : f32
  // CHECK: const float slope = attn::exp2((float)(q0 + k0) * -2.500000000e+00f);
  %sum = arith.addi %q0, %k0 : i32
  %float = arith.sitofp %sum : i32 to f32
  %exponent = arith.mulf %float, %minus : f32
  %slope = math.exp2 %exponent : f32 loc("slope")
  // Arguments that are not used have no name.
  // CHECK-NEXT: attn::modify(s, q0, k0, [=](float score, int query, int, int base, float column_offset) {
  // CHECK-NEXT:   return score - attn::abs(attn::fma(column_offset, slope, (float)(base - query) * slope));
  // CHECK-NEXT: });
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 1> {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    %distance = arith.subi %base, %q : i32
    %d = arith.sitofp %distance : i32 to f32
    %first = arith.mulf %d, %slope : f32
    %bias = math.fma %column_offset, %slope, %first : f32
    %size = math.absf %bias : f32
    %new = arith.subf %score, %size : f32
    tile.yield %new : f32
  }
  // A score as a * b + c, and where it is weighed.
  // CHECK: attn::softmax_convert(p, s, row, 1.000000000e+00f, q0, k0, [=](float score, int, int, int, float column_offset) {
  // CHECK-NEXT:   return attn::LinearScore{score, column_offset, slope};
  // CHECK-NEXT: });
  tile.softmax_convert %p, %s, %row scale 0.69314718055994531 at(%q0, %k0) : !tile.register_operand<64x64xbf16, 1>, !tile.frag<64x64, 1>, !tile.softmax_state<64, 1> modify {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %column_offset, %slope : f32, f32, f32
  }
  // Where maxima say whether all scores are small: 20 / ln 2.
  // CHECK: attn::softmax_convert(p, s, row, 1.000000000e+00f, q0, k0, attn::SmallBound{2.885390082e+01f}, [=](float score, int, int, int, float) {
  // CHECK: }, [=](float score, int, int, int, float) {
  // CHECK: attn::tanh(score)
  // CHECK-NEXT: });
  tile.softmax_convert %p, %s, %row scale 0.69314718055994531 at(%q0, %k0) : !tile.register_operand<64x64xbf16, 1>, !tile.frag<64x64, 1>, !tile.softmax_state<64, 1> within 30.0 becomes 20.0 {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  } else modify {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    %tanh = math.tanh %score : f32
    tile.yield %tanh : f32
  }
  // CHECK-NEXT: attn::modify(s, q0, k0, 4.000000000e+00f, [=](float score, int, int, int, float) {
  // CHECK-NEXT:   const float square = score * score;
  // CHECK-NEXT:   return score - square * (square + 5.000000000e-01f);
  // CHECK-NEXT: }, [=](float score, int, int key, int, float) {
  // CHECK-NEXT:   return -attn::tanh(score) * -(key < 7 ? score : 5.000000000e-01f);
  // CHECK-NEXT: });
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 1> within 4.0 {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    %square = arith.mulf %score, %score : f32 loc("square")
    %more = arith.addf %square, %half : f32
    %product = arith.mulf %square, %more : f32
    %new = arith.subf %score, %product : f32
    tile.yield %new : f32
  } else {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    %seven = arith.constant 7 : i32
    %tanh = math.tanh %score : f32
    %first = arith.negf %tanh : f32
    %near = arith.cmpi slt, %k, %seven : i32
    %chosen = arith.select %near, %score, %half : f32
    %second = arith.negf %chosen : f32
    %new = arith.mulf %first, %second : f32
    tile.yield %new : f32
  }
}
