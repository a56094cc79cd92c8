// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `convert-attn-to-tile`: the plain program of a dense causal problem, in full.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %s --check-prefix=CPU
// CPU: tile.kernel @causal({{.*}}) target("cpu")

// CHECK-NOT: attn.problem
// CHECK: tile.kernel @causal(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %v: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>,
// CHECK-SAME: %batch: i32, %seqlen_q: i32, %seqlen_kv: i32,
// CHECK-SAME: %q_batch: i64, %q_row: i64, %q_head: i64, %k_batch: i64, %k_row: i64, %k_head: i64,
// CHECK-SAME: %v_batch: i64, %v_row: i64, %v_head: i64, %o_batch: i64, %o_row: i64, %o_head: i64,
// CHECK-SAME: %lse_batch: i64, %lse_head: i64)
// CHECK-SAME: target("sm_80") grid(dense heads 8) schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 2>) {
attn.problem @causal mask(#attn.causal) layout(bshd) heads(8, 2) dims(72, 40) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 2>)

// Places: columns in multiples of 16, rows one 16-byte unit apart.
// CHECK-NEXT: %Q = tile.alloc "Q" : !tile.shared<64x80xbf16, 88>
// CHECK-NEXT: %K = tile.alloc "K" : !tile.shared<32x80xbf16, 88>
// CHECK-NEXT: %V = tile.alloc "V" : !tile.shared<32x48xbf16, 56>
// CHECK-NEXT: %s = tile.alloc "s" : !tile.frag<64x32, 4>
// CHECK-NEXT: %acc = tile.alloc "acc" : !tile.frag<64x48, 4>
// CHECK-NEXT: %row = tile.alloc "row" : !tile.softmax_state<64, 4>

// Who am I: block -> tile, head, sequence; the last tile, which sees most, first.
// CHECK: tile.index block
// CHECK: %[[TILES:.*]] = arith.divui %{{.*}}, %c64_i32
// CHECK: %[[LAST:.*]] = arith.subi %[[TILES]], %c1_i32
// CHECK: %[[TILE:.*]] = arith.subi %[[LAST]], %{{.*}}
// CHECK: %[[Q0:.*]] = arith.muli %[[TILE]], %c64_i32
// CHECK: %[[LEFT:.*]] = arith.subi %seqlen_q, %[[Q0]]
// CHECK: %[[ROWS:.*]] = arith.minsi %[[LEFT]], %c64_i32

// Q is loaded once.
// CHECK: %[[TQ:.*]] = tile.copy_async %Q, %{{.*}} stride(%q_row) rows(%[[ROWS]]) dim 72
// CHECK-NEXT: tile.clear %acc
// CHECK-NEXT: tile.clear %row
// CHECK-NEXT: tile.wait %[[TQ]]

// Causal: full tiles up to the first row's diagonal, then tiles with one test.
// CHECK: tile.kv_loop [%c0_i32{{.*}}, %{{.*}}, %{{.*}}] tests {{\[\[}}], [0]] carry() {
// CHECK-NEXT: ^bb0(%j: i32, %next: i32, %more: i1):
// CHECK: %[[K0:.*]] = arith.muli %j, %c32_i32
// CHECK: %[[KEYS:.*]] = arith.subi %seqlen_kv, %[[K0]]
// CHECK: %[[TK:.*]] = tile.copy_async %K, %{{.*}} stride(%k_row) rows(%[[KEYS]]) dim 72
// CHECK-NEXT: tile.wait %[[TK]]
// CHECK-NEXT: %[[TS:.*]] = tile.mma_abt %s, %Q, %K
// CHECK-NEXT: tile.wait %[[TS]]
// CHECK-NEXT: tile.apply_mask %s at(%[[Q0]], %[[K0]])
// CHECK: ^bb0(%[[ROW:.*]]: i32, %[[KEY:.*]]: i32):
// CHECK: %[[BEHIND:.*]] = arith.addi %[[ROW]], %c1_i32
// CHECK: %[[END:.*]] = arith.minsi %[[BEHIND]], %seqlen_kv
// CHECK: %[[KEPT:.*]] = arith.cmpi slt, %[[KEY]], %[[END]]
// CHECK: tile.yield %[[KEPT]] : i1
// The scale is 1/sqrt(72).
// CHECK: tile.online_softmax %s, %row, %acc scale 0.11785{{[0-9]+}}
// CHECK: %[[TV:.*]] = tile.copy_async %V, %{{.*}} stride(%v_row) rows(%{{.*}}) dim 40
// CHECK-NEXT: tile.wait %[[TV]]
// CHECK-NEXT: %[[TA:.*]] = tile.mma_ab %acc, %s, %V {guarded}
// CHECK-NEXT: tile.wait %[[TA]]
// CHECK-NEXT: tile.yield

// CHECK: tile.normalize %acc, %row
// CHECK: tile.store %{{.*}} stride(%o_row), %acc rows(%[[ROWS]], %[[ROWS]]) dim 40
// CHECK: tile.store_lse %{{.*}}, %row rows(%[[ROWS]], %[[ROWS]])

// A given scale is taken; without lse nothing of it is left.
// CHECK: tile.kernel @no_lse
// CHECK-NOT: lse
// CHECK: tile.online_softmax {{.*}} scale 5.000000e-01
// CHECK-NOT: %lse
attn.problem @no_lse mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(f16) scale(0.5) outputs(o)

// Held queries are read into registers once, and the products take them there.
// CHECK: tile.kernel @held
// CHECK: %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
// CHECK: tile.wait
// CHECK-NEXT: tile.load_operand %q_operand, %Q
// CHECK: tile.mma_abt %s, %q_operand, %K
attn.problem @held mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 2, q_in_registers = true>)

// A negative scale moves its sign into Q; 0 becomes 2^-100.
// CHECK: tile.kernel @negative
// CHECK: tile.wait
// CHECK-NEXT: tile.scale %Q by -1.000000e+00
// CHECK: tile.online_softmax {{.*}} scale 2.500000e-01
attn.problem @negative mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(-0.25)
// CHECK: tile.kernel @zero
// CHECK-NOT: tile.scale
// CHECK: tile.online_softmax {{.*}} scale 7.88860905{{.*}}E-31
attn.problem @zero mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(0.0)
