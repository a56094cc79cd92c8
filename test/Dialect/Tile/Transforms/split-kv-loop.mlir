// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-split-kv-loop`: a loop for each segment of a walk, with the tests it needs.
//
// RUN: attn-opt %s -tile-split-kv-loop | FileCheck %s
// RUN: attn-opt %s -tile-split-kv-loop -mlir-print-op-generic | attn-opt | FileCheck %s

// A window: both bounds are tested first; none in full tiles, where the product
// needs no guard; behind them the causal one alone.
// CHECK-LABEL: tile.kernel @window
// CHECK-NOT: tile.kv_loop
// CHECK: scf.for %[[J:.*]] = %lo to %mid step
// CHECK: tile.copy_async %K
// CHECK: tile.apply_mask %s at(%n, %[[J]])
// CHECK-NEXT: ^bb0(%[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK-DAG: %[[LEFT:.*]] = arith.cmpi sle, %lo, %[[K]]
// CHECK-DAG: %[[RIGHT:.*]] = arith.cmpi sle, %[[K]], %[[Q]]
// CHECK: tile.yield %[[LEFT]], %[[RIGHT]] : i1, i1
// CHECK: tile.mma_ab %acc, %s, %V {guarded}
// CHECK: scf.for %{{.*}} = %mid to %n step
// CHECK-NOT: tile.apply_mask
// CHECK: tile.online_softmax
// CHECK-NOT: guarded
// CHECK: tile.mma_ab %acc, %s, %V :
// CHECK-NOT: tile.apply_mask
// CHECK: scf.for %{{.*}} = %n to %hi step
// CHECK: tile.apply_mask
// CHECK-NEXT: ^bb0(%[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: %[[RIGHT:.*]] = arith.cmpi sle, %[[K]], %[[Q]]
// CHECK-NEXT: tile.yield %[[RIGHT]] : i1
// CHECK: tile.mma_ab %acc, %s, %V {guarded}
// CHECK-NOT: scf.for
tile.kernel @window(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  tile.kv_loop [%lo, %mid, %n, %hi] tests [[0, 1], [], [1]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tk : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    tile.apply_mask %s at(%n, %j) : !tile.frag<64x64, 4> {
    ^bb0(%query: i32, %key: i32):
      %after = arith.cmpi sle, %lo, %key : i32
      %before = arith.cmpi sle, %key, %query : i32
      tile.yield %after, %before : i1, i1
    }
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %tv = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    %ta = tile.mma_ab %acc, %s, %V {guarded} : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield
  }
}

// What is carried goes from loop to loop; `next` and `more` are of the whole run.
// CHECK-LABEL: tile.kernel @carried
// CHECK: %[[T0:.*]] = tile.copy_async %K
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[T1:.*]] = scf.for %[[J:.*]] = %lo to %mid step %[[ONE]] iter_args(%[[A:.*]] = %[[T0]]) -> (!tile.token<copy>)
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %[[ONE]] : i32
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %hi : i32
// CHECK: tile.wait %[[A]]
// CHECK: %[[C:.*]] = tile.copy_async %K, %q stride(%stride) rows(%[[NEXT]]) dim 64 when(%[[MORE]])
// CHECK: scf.yield %[[C]] : !tile.token<copy>
// CHECK: %[[T2:.*]] = scf.for %{{.*}} = %mid to %hi step %[[ONE]] iter_args(%{{.*}} = %[[T1]])
// CHECK: arith.cmpi slt, %{{.*}}, %hi : i32
// CHECK: }
// CHECK: tile.wait %[[T2]] : !tile.token<copy>
tile.kernel @carried(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %t0 = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %r = tile.kv_loop [%lo, %mid, %hi] tests [[], []] carry(%t0 : !tile.token<copy>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<copy>):
    tile.wait %c : !tile.token<copy>
    %tk = tile.copy_async %K, %q stride(%stride) rows(%next) dim 64 when(%more) : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.yield %tk : !tile.token<copy>
  }
  tile.wait %r : !tile.token<copy>
}
