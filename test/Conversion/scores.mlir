// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Score modifiers: an op each, between the product and the mask's test, on what the
// product leaves; constants move into the scale of the softmax.
//
// RUN: attn-opt %s -convert-attn-to-tile -canonicalize | FileCheck %s
// RUN: attn-opt %s -convert-attn-to-tile="target=sm_90a" -canonicalize | FileCheck %s --check-prefix=SM90

// 0.125 / 50 is in the coefficients, so scores arrive at the softmax as multiples of
// the cap. Up to the cap, a product of 400, the polynomial is taken.
// CHECK-LABEL: tile.kernel @capped
// CHECK: %[[C:.*]] = arith.constant 2.500000e-03 : f32
// CHECK: tile.wait %{{.*}} : !tile.token<product>
// CHECK-NEXT: tile.modify %s at(%q0, %k0) : {{.*}} within 4.000000e+02 {
// CHECK-NEXT: ^bb0(%score: f32, %q_{{.*}}: i32, %k_{{.*}}: i32, %base: i32, %ahead: f32):
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %score, %score : f32
// CHECK-COUNT-4: math.fma %{{.*}}, %[[SQUARE]], %{{.*}} : f32
// CHECK: %[[RESULT:.*]] = arith.mulf %score, %{{.*}} : f32
// CHECK-NEXT: tile.yield %[[RESULT]] : f32
// CHECK-NEXT: } else {
// CHECK: %[[X:.*]] = arith.mulf %score, %[[C]] : f32
// CHECK-NEXT: math.tanh %[[X]] : f32
// CHECK: tile.keep %s
// CHECK: tile.softmax_step %s, %row, %acc scale 5.000000e+01
attn.problem @capped mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<50.0>])

// The slope, in units of a product, is worked out once a query tile, before the walk;
// for 12 heads the last 4 have every other slope of 16.
// CHECK-LABEL: tile.kernel @alibi
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[STEP:.*]] = arith.constant -5.000000e-01 : f32
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 8.000000e+00 : f32
// CHECK: arith.cmpi slt, %h, %[[EIGHT]] : i32
// CHECK: %slope_number = arith.select
// CHECK: %[[N:.*]] = arith.sitofp %slope_number : i32 to f32
// CHECK: %[[E:.*]] = arith.mulf %[[N]], %[[STEP]] : f32
// CHECK: %[[S:.*]] = math.exp2 %[[E]] : f32
// CHECK: %slope = arith.mulf %[[S]], %[[SCALE]] : f32
// CHECK: %[[SHIFT:.*]] = arith.subi %seqlen_kv, %seqlen_q : i32
// CHECK: tile.kv_loop
// CHECK: tile.modify %s at(%q0, %k0) : !tile.frag<128x64, 4> {
// CHECK: %[[DIAGONAL:.*]] = arith.addi %q_{{.*}}, %[[SHIFT]] : i32
// CHECK: %[[FIRST:.*]] = arith.subi %base, %[[DIAGONAL]] : i32
// CHECK: %[[FLOAT:.*]] = arith.sitofp %[[FIRST]] : i32 to f32
// CHECK: %[[BIAS:.*]] = arith.mulf %[[FLOAT]], %slope : f32
// CHECK: %[[AT:.*]] = math.fma %ahead, %slope, %[[BIAS]] : f32
// CHECK: %[[SIZE:.*]] = math.absf %[[AT]] : f32
// CHECK: %[[NEW:.*]] = arith.subf %score, %[[SIZE]] : f32
// CHECK: tile.yield %[[NEW]] : f32
// CHECK: tile.softmax_step %s, %row, %acc scale 1.250000e-01
attn.problem @alibi mask(#attn.full) layout(bshd) heads(12) dims(64) dtype(bf16) score([#attn.alibi<bottom_right>])

// Given slopes may be negative: their sign stays outside the distance's size.
// CHECK-LABEL: tile.kernel @given
// CHECK: %[[GIVEN:.*]] = tile.load %slopes[%h] : i32 from !tile.ptr<f32>
// CHECK: %minus_slope = arith.mulf %[[GIVEN]], %{{.*}} : f32
// CHECK: tile.modify
// CHECK: %[[D:.*]] = arith.addf %{{.*}}, %ahead : f32
// CHECK: %[[SIZE:.*]] = math.absf %[[D]] : f32
// CHECK: math.fma %[[SIZE]], %minus_slope, %score : f32
attn.problem @given mask(#attn.full) layout(bshd) heads(12) dims(64) dtype(bf16) score([#attn.alibi<"slopes">])

// One op after the other, in order: behind the bias, the cap's bound is on the sum.
// CHECK-LABEL: tile.kernel @both
// CHECK: tile.modify
// CHECK-NOT: math.tanh
// CHECK: math.absf
// CHECK: tile.modify {{.*}} within 1.600000e+01 {
// CHECK-NOT: math.absf
// CHECK: math.tanh
// CHECK-NOT: tile.modify
// CHECK: tile.softmax_step %s, %row, %acc scale 2.000000e+00
attn.problem @both mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.alibi, #attn.softcap<2.0>])

// Rows that are computed anew: both in one region, on products with their sign (here
// that of the scale), whatever is left of the scale outside.
// SM90-LABEL: tile.kernel @negative
// SM90: tile.mma_qk {{.*}}negated
// SM90: tile.modify {{.*}} within 4.000000e+00
// SM90: tile.modify
// SM90: tile.softmax_step {{.*}} scale 2.000000e+00
// SM90: tile.repair {{.*}} scale 2.000000e+00
// SM90: } modify {
// SM90-NEXT: ^bb0(%score: f32, %q_{{.*}}: i32, %k_{{.*}}: i32, %base: i32, %ahead: f32):
// SM90-NEXT: arith.negf %score : f32
// SM90: math.tanh
// SM90: arith.subf
// SM90: tile.yield
// CHECK-LABEL: tile.kernel @negative
// CHECK: tile.negate
attn.problem @negative mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) scale(-0.5)
  score([#attn.softcap<2.0>, #attn.alibi])

// A scale so small that slopes could not be divided by it, and one whose coefficients
// would leave f32: scores are multiplied first.
// CHECK-LABEL: tile.kernel @zero
// CHECK: %[[LEAST:.*]] = arith.constant 1.401300e-45 : f32
// CHECK: tile.modify
// CHECK: arith.mulf %score, %[[LEAST]] : f32
// CHECK: tile.softmax_step %s, %row, %acc scale 1.000000e+00
attn.problem @zero mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(0.0) score([#attn.alibi])
// CHECK-LABEL: tile.kernel @large
// CHECK: tile.modify {{.*}} within 9.765625E-4 {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %square = arith.mulf %score, %score : f32
attn.problem @large mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(1024.0) score([#attn.softcap<1.0>])
// CHECK-LABEL: tile.kernel @larger
// CHECK: %[[C:.*]] = arith.constant 8.192000e+03 : f32
// CHECK: tile.modify
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[X:.*]] = arith.mulf %score, %[[C]] : f32
// CHECK-NEXT: %square = arith.mulf %[[X]], %[[X]] : f32
attn.problem @larger mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(8192.0) score([#attn.softcap<1.0>])
