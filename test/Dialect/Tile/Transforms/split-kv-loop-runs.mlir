// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-split-kv-loop` on a mask with holes: one loop over runs around one over
// tiles, one body, whose test stands behind the question whether its tile is full.
//
// RUN: attn-opt %s -tile-split-kv-loop | FileCheck %s

// CHECK-LABEL: tile.kernel @two_runs
// CHECK-NOT: tile.kv_loop
// The tile behind run 0: the first of run 1, if that has one.
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %mid, %hi : i32
// CHECK: arith.select %[[ANY]], %mid,
// CHECK: %[[T1:.*]] = scf.for %[[AT:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (!tile.token<copy>)
// CHECK: %[[BEGIN:.*]] = arith.select %{{.*}}, %lo, %mid : i32
// Run 0 has no full tiles: they begin and end at its end. Run 1 has them up front.
// CHECK: %[[FULL_BEGIN:.*]] = arith.select %{{.*}}, %n, %mid : i32
// CHECK: %[[FULL_END:.*]] = arith.select %{{.*}}, %n, %full : i32
// CHECK: %[[END:.*]] = arith.select %{{.*}}, %n, %hi : i32
// CHECK: scf.for %[[J:.*]] = %[[BEGIN]] to %[[END]] step %{{.*}} iter_args(%[[C:.*]] = %[[A]]) -> (!tile.token<copy>)
// CHECK: %[[FOLLOWER:.*]] = arith.addi %[[J]]
// CHECK: %[[WITHIN:.*]] = arith.cmpi slt, %[[FOLLOWER]], %[[END]] : i32
// CHECK: %[[NEXT:.*]] = arith.select %[[WITHIN]], %[[FOLLOWER]],
// CHECK: %[[MORE:.*]] = arith.ori %[[WITHIN]],
// CHECK-DAG: %[[BEFORE:.*]] = arith.cmpi slt, %[[J]], %[[FULL_BEGIN]]
// CHECK-DAG: %[[BEHIND:.*]] = arith.cmpi sle, %[[FULL_END]], %[[J]]
// CHECK: %[[PARTIAL:.*]] = arith.ori %[[BEFORE]], %[[BEHIND]]
// CHECK: tile.wait %[[C]]
// CHECK: tile.copy_async %K, %q stride(%stride) rows(%[[NEXT]]) dim 64 when(%[[MORE]])
// CHECK: scf.if %[[PARTIAL]] {
// CHECK-NEXT: tile.apply_mask %s
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
// CHECK: tile.online_softmax
// CHECK: tile.mma_ab %acc, %s, %V when(%[[PARTIAL]]) {guarded}
// CHECK-NOT: tile.mma_ab %
// CHECK: tile.wait %[[T1]]
tile.kernel @two_runs(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32, %full: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %t0 = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %r = tile.kv_loop [%lo, %n] tests [[0, 1]], [%mid, %full, %hi] tests [[], [0, 1]] carry(%t0 : !tile.token<copy>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<copy>):
    tile.wait %c : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    %tv = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    %tk = tile.copy_async %K, %q stride(%stride) rows(%next) dim 64 when(%more) : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.apply_mask %s at(%n, %j) : !tile.frag<64x64, 4> {
    ^bb0(%query: i32, %key: i32):
      %after = arith.cmpi sle, %lo, %key : i32
      %before = arith.cmpi sle, %key, %query : i32
      tile.yield %after, %before : i1, i1
    }
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %ta = tile.mma_ab %acc, %s, %V {guarded} : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield %tk : !tile.token<copy>
  }
  tile.wait %r : !tile.token<copy>
}
