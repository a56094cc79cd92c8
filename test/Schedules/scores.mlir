// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Score modifiers: an op each, between the product and the mask's test, on what the
// product leaves; constants move into the scale of the softmax.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile -canonicalize | FileCheck %s
// RUN: attn-opt %s -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize | FileCheck %s --check-prefix=SM90

// 0.125 / 50 is in the coefficients, and all else, so scores arrive at the softmax as
// exponents of 2. Up to two fifths of the cap, a product of 160, the polynomial is taken; the
// score is a product with it, so that the softmax may multiply by it.
// CHECK-LABEL: tile.kernel @capped
// CHECK: %[[C:.*]] = arith.constant 2.500000e-03 : f32
// CHECK: tile.wait %{{.*}} : !tile.token<product>
// CHECK-NEXT: tile.modify %s at(%q0, %k0) : {{.*}} within 1.600000e+02 becomes 18.997448{{[0-9]*}} {
// CHECK-NEXT: ^bb0(%score: f32, %q_{{.*}}: i32, %k_{{.*}}: i32, %base: i32, %column_offset: f32):
// CHECK-NEXT: %beyond = math.fma %score, %score, %{{.*}} : f32
// CHECK-NEXT: %[[INNER:.*]] = math.fma %{{.*}}, %beyond, %{{.*}} : f32
// CHECK-NEXT: %[[TIMES:.*]] = math.fma %[[INNER]], %beyond, %{{.*}} : f32
// CHECK-NEXT: tile.yield %score, %[[TIMES]], %{{.*}} : f32, f32, f32
// CHECK-NEXT: } else {
// CHECK: %[[X:.*]] = arith.mulf %score, %[[C]] : f32
// CHECK-NEXT: %[[TANH:.*]] = math.tanh %[[X]] : f32
// CHECK-NEXT: tile.yield %[[TANH]], %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK: tile.apply_mask %s
// CHECK: tile.online_softmax %s, %row, %acc scale 0.69314718055994529
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
// CHECK: %[[AT:.*]] = math.fma %column_offset, %slope, %[[BIAS]] : f32
// CHECK: %[[SIZE:.*]] = math.absf %[[AT]] : f32
// CHECK: %[[NEW:.*]] = arith.subf %score, %[[SIZE]] : f32
// CHECK: tile.yield %[[NEW]] : f32
// Up to the diagonal, scores rise from tile to tile.
// CHECK: tile.online_softmax %s, %row, %acc scale 1.250000e-01 {rising}
attn.problem @alibi mask(#attn.full) layout(bshd) heads(12) dims(64) dtype(bf16) score([#attn.alibi<bottom_right>])

// Given slopes may be negative: their sign stays outside the distance's size.
// CHECK-LABEL: tile.kernel @given
// CHECK: %[[GIVEN:.*]] = tile.load %slopes[%h] : i32 from !tile.ptr<f32>
// CHECK: %minus_slope = arith.mulf %[[GIVEN]], %{{.*}} : f32
// CHECK: tile.modify
// CHECK: %[[D:.*]] = arith.addf %{{.*}}, %column_offset : f32
// CHECK: %[[SIZE:.*]] = math.absf %[[D]] : f32
// CHECK: math.fma %[[SIZE]], %minus_slope, %score : f32
attn.problem @given mask(#attn.full) layout(bshd) heads(12) dims(64) dtype(bf16) score([#attn.alibi<"slopes">])

// Rows that see no key beyond the diagonal need no size, so one FMA is left a score, and
// something of the row. Scores are largest at the last key, where the walk begins: tile j is
// number -1 - j.
// CHECK-LABEL: tile.kernel @up_to_the_diagonal
// CHECK-DAG: %[[LAST:.*]] = arith.constant -1 : i32
// CHECK: %slope = arith.mulf
// CHECK: tile.kv_loop [%{{.*}}, %{{.*}}, %{{.*}}] tests {{\[\[}}0], []] carry() {
// CHECK-NEXT: ^bb0(%[[J:.*]]: i32, %{{.*}}: i32, %{{.*}}: i1):
// CHECK-NEXT: %[[TILE:.*]] = arith.subi %[[LAST]], %[[J]] : i32
// CHECK-NEXT: %k0 = arith.muli %[[TILE]], %{{.*}} : i32
// CHECK: tile.modify
// CHECK: %[[FIRST:.*]] = arith.subi %base, %q_{{.*}} : i32
// CHECK: %[[FLOAT:.*]] = arith.sitofp %[[FIRST]] : i32 to f32
// CHECK-NEXT: %[[A:.*]] = math.fma %column_offset, %slope, %score : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[FLOAT]], %slope : f32
// CHECK-NEXT: tile.yield %[[A]], %{{.*}}, %[[C]] : f32, f32, f32
// CHECK: tile.online_softmax
// CHECK-NOT: rising
// CHECK-SAME: : !tile.frag
attn.problem @up_to_the_diagonal mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi])

// The same below another bound; but not where some row sees what lies behind, nor up to
// another diagonal.
// CHECK-LABEL: tile.kernel @window
// CHECK-NOT: math.absf
// CHECK-LABEL: tile.kernel @ahead
// CHECK: math.absf
// CHECK-LABEL: tile.kernel @other_diagonal
// CHECK: math.absf
attn.problem @window mask(#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 20>>, #attn.causal>) layout(bshd)
  heads(8) dims(64) dtype(bf16) score([#attn.alibi])
attn.problem @ahead mask(#attn.band<left = 20, right = 1>) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi])
attn.problem @other_diagonal mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.alibi<bottom_right>])

// Boxes of packed keys end where a sequence does, so walks over them begin there, too.
// CHECK-LABEL: tile.kernel @packed
// CHECK: tests {{\[\[}}0], []]
// CHECK-NOT: rising
// SM90-LABEL: tile.kernel @packed
// SM90: tests {{\[\[}}0], []]
// SM90-NOT: rising
// SM90: tile.online_softmax
// SM90-NOT: rising
attn.problem @packed mask(#attn.causal) layout(thd) heads(8) dims(64) dtype(bf16) score([#attn.alibi])

// One op after the other, in order: behind the bias, the cap's bound is on the sum.
// CHECK-LABEL: tile.kernel @both
// CHECK: tile.modify
// CHECK-NOT: math.tanh
// CHECK: math.fma %column_offset
// CHECK: tile.modify {{.*}} within 6.3984375 becomes {{.*}} {
// CHECK-NOT: math.fma %column_offset
// CHECK: math.tanh
// CHECK-NOT: tile.modify
// CHECK: tile.online_softmax %s, %row, %acc scale 0.69314718055994529
attn.problem @both mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16)
  score([#attn.alibi, #attn.softcap<2.0>])

// Rows that are computed anew: both in one region, on products with their sign (here
// that of the scale), whatever is left of the scale outside.
// SM90-LABEL: tile.kernel @negative
// SM90: tile.mma_abt {{.*}}negated
// SM90: tile.modify {{.*}} within 1.599609375
// SM90: tile.modify
// SM90: tile.online_softmax {{.*}} scale 0.69314718055994529
// SM90: tile.recompute_rows {{.*}} scale 0.69314718055994529
// SM90: } modify {
// SM90-NEXT: ^bb0(%score: f32, %q_{{.*}}: i32, %k_{{.*}}: i32, %base: i32, %column_offset: f32):
// SM90-NEXT: arith.negf %score : f32
// SM90: math.tanh
// SM90: math.fma %column_offset
// SM90: arith.addf
// SM90: tile.yield %{{[^,]*}} : f32
// CHECK-LABEL: tile.kernel @negative
// CHECK: tile.scale
attn.problem @negative mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) scale(-0.5)
  score([#attn.softcap<2.0>, #attn.alibi])

// A scale of 0, by which slopes could not be divided, and one whose coefficients
// would leave f32: scores are multiplied first.
// CHECK-LABEL: tile.kernel @zero
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: tile.modify
// CHECK: arith.mulf %score, %[[ZERO]] : f32
// CHECK: tile.online_softmax %s, %row, %acc scale 1.000000e+00
attn.problem @zero mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(0.0) score([#attn.alibi])
// CHECK-LABEL: tile.kernel @large
// CHECK: tile.modify {{.*}} within 3.9052963256835938E-4 becomes {{.*}} {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %beyond = math.fma %score, %score, %{{.*}} : f32
attn.problem @large mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(1024.0) score([#attn.softcap<1.0>])
// CHECK-LABEL: tile.kernel @larger
// CHECK: %[[C:.*]] = arith.constant 20485.002 : f32
// CHECK: tile.modify
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[X:.*]] = arith.mulf %score, %[[C]] : f32
// CHECK-NEXT: %beyond = math.fma %[[X]], %[[X]], %{{.*}} : f32
attn.problem @larger mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(8192.0) score([#attn.softcap<1.0>])

// What is read for each head is read before the walk; for each score, at an offset of 64 bits, within the array.
// CHECK-LABEL: tile.kernel @biased
// CHECK-SAME: %t: !tile.ptr<f32>, %bias: !tile.ptr<f32>, %table: !tile.ptr<f32>
// CHECK: %[[SCALE:.*]] = tile.load %t[%h]
// CHECK: tile.kv_loop
// CHECK: tile.modify
// CHECK: arith.mulf %{{.*}}, %[[SCALE]]
// CHECK: tile.modify
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %[[Q:.*]]: i32, %[[K:.*]]: i32, %{{.*}}: i32, %{{.*}}: f32):
// CHECK: %[[LAST:.*]] = arith.subi %seqlen_q, %c1_i32
// CHECK: arith.minsi %[[Q]], %[[LAST]]
// CHECK: tile.load %bias[%{{.*}}] : i64
// CHECK: math.fma
// CHECK: tile.modify
// CHECK: arith.maxsi %{{.*}}, %c-128_i32
// CHECK: tile.load %table[%{{.*}}] : i64
attn.problem @biased mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  score([#attn.head_scale<"t">, #attn.bias<"bias", bhqk>, #attn.relative_bias<"table", 128>])
